"""How far an answer can be trusted: how large its errors are, was y = A x + noise true, and does it look like a picture?"""

from leader.trust.error_map import ErrorMap, with_errors
from leader.trust.evidence import Watch
from leader.trust.judging import Verdict, judge, verdict

__all__ = ["ErrorMap", "Verdict", "Watch", "judge", "verdict", "with_errors"]
