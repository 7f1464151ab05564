"""How far a result can be trusted: how large its errors are, whether y = A x + noise holds, and whether it looks natural."""

from leader.trust.error_map import ErrorMap, add_errors, raise_invented
from leader.trust.evidence import Watch
from leader.trust.judging import Verdict, judge
from leader.trust.measuring import RunFacts, measure

__all__ = ["ErrorMap", "RunFacts", "Verdict", "Watch", "add_errors", "judge", "measure", "raise_invented"]
