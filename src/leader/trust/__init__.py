"""How far an answer can be trusted: how large its errors are, was y = A x + noise true, and does it look like a picture?"""

from leader.trust.error_map import ErrorMap, add_errors, raise_invented
from leader.trust.evidence import Watch
from leader.trust.judging import Verdict, judge
from leader.trust.measuring import RunFacts, measure

__all__ = ["ErrorMap", "RunFacts", "Verdict", "Watch", "add_errors", "judge", "measure", "raise_invented"]
