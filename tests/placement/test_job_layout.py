"""The parallel sizes of a job that ran: told by its communicators where they leave no doubt, and by nothing else."""

from collections.abc import Sequence

import numpy as np

from tests.checks import jobs
from tests.tables import examples
from topodiag.model.dimensions import BY_NAME
from topodiag.model.finding import Confidence
from topodiag.model.job import Communicator, Job
from topodiag.model.layout import Layout
from topodiag.model.layout_groups import groups_of
from topodiag.placement.job_groups import layout_of_job


def comms(
    layout: Layout, world: int, names: Sequence[str], confidence: Confidence = Confidence.HIGH
) -> list[Communicator]:
    """The communicators of these dimensions, as a log names them."""
    communicators: list[Communicator] = []
    for name in names:
        for row in groups_of(layout, world)[name]:
            role = BY_NAME[name].role
            communicators.append(
                Communicator(len(communicators) + 1, len(row), row.astype(np.int64), role=role, role_sure=confidence)
            )
    return communicators


def of(layout: Layout, names: Sequence[str], world: int = 16, sure: Confidence = Confidence.HIGH) -> Job:
    return jobs.job(world // 8, communicators=comms(layout, world, names, sure))


@examples("layout")
def test_sizes_that_make_all_ranks_are_the_layout(layout: Layout) -> None:
    sizes = layout.for_world(16).sizes
    found = layout_of_job(of(layout, [name for name, size in sizes.items() if size > 1]))
    assert dict(found.sizes) == dict(sizes)
    assert all(found.stride(name) == layout.stride(name) for name, size in sizes.items() if size > 1)


def test_groups_of_one_dimension_alone_do_not_say_what_the_others_are() -> None:
    assert layout_of_job(of(Layout(tp=4, dp=4), ["tp"])) is None


def test_roles_that_are_a_guess_tell_no_layout() -> None:
    assert layout_of_job(of(Layout(tp=8, dp=2), ["tp", "dp"], sure=Confidence.LOW)) is None


def test_a_job_of_one_communicator_has_no_layout() -> None:
    assert layout_of_job(jobs.job(2)) is None


def test_groups_that_no_order_of_dimensions_makes_tell_no_layout() -> None:
    communicators = comms(Layout(tp=8, dp=2), 16, ["tp", "dp"])
    communicators[0] = Communicator(
        1, 8, np.array([0, 1, 2, 3, 4, 5, 6, 15]), role=communicators[0].role, role_sure=Confidence.HIGH
    )
    assert layout_of_job(jobs.job(2, communicators=communicators)) is None
