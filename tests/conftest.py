"""For the whole suite: no example of a property test is judged by its time, which says more of the machine's load."""

from hypothesis import settings

settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
