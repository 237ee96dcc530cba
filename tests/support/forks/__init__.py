"""Servers and commands of tests that begin as copies of a process which has loaded the program.

Loading takes most of the processor time of a start, and the tests start hundreds of them.
"""

from .fork_server import FORKS, STARTERS
from .process import ForkedProcess

__all__ = ["FORKS", "STARTERS", "ForkedProcess"]
