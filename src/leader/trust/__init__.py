"""How far an answer can be trusted: was y = A x + noise true, and does the picture look like one?"""

from leader.trust.judging import Verdict, judge, verdict

__all__ = ["Verdict", "judge", "verdict"]
