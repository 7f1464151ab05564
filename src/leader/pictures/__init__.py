"""Pictures: files, arrays, and figures of the results."""

from leader.pictures.formats import FORMATS, SUFFIXES, list_pictures
from leader.pictures.picture import MOST_PIXELS, Picture
from leader.pictures.reading import from_pil, read_picture
from leader.pictures.writing import check_format, write_picture

__all__ = [
    "FORMATS",
    "MOST_PIXELS",
    "SUFFIXES",
    "Picture",
    "check_format",
    "from_pil",
    "list_pictures",
    "read_picture",
    "write_picture",
]
