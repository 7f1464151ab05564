"""What a picture reveals about its past: compression, noise, blur, defects, size."""

from leader.forensics.examination import Examination, examine
from leader.forensics.outcome import NotExamined

__all__ = ["Examination", "NotExamined", "examine"]
