from tests.tables import examples
from topodiag.words.dialect import AMD, NVIDIA


@examples("text", "said")
def test_amd_has_words_of_its_own(text: str, said: str) -> None:
    assert AMD.say(text) == said
    assert NVIDIA.say(text) == text


def test_a_phrase_is_not_spoken_twice() -> None:
    assert AMD.say("nvidia-smi") == "amd-smi"
    assert AMD.say(AMD.say("nvidia-smi nvlink -s")) == "amd-smi xgmi"


def test_steps_without_a_counterpart_are_left_out() -> None:
    steps = ("systemctl status nvidia-fabricmanager", "nvidia-smi nvlink -s -i N", "nvidia-smi nvlink -s", "reboot")
    assert AMD.steps(steps) == ("amd-smi xgmi", "reboot")
    assert NVIDIA.steps(steps) == steps
