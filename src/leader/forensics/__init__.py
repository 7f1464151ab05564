"""What a picture tells of its own past: compression, noise, blur, defects, size."""

from leader.forensics.examination import Examination, examine
from leader.forensics.outcome import NotExamined

__all__ = ["Examination", "NotExamined", "examine"]
