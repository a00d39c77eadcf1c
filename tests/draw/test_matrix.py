"""Ranks by transport: equal hosts are one block with their count, the odd one is framed and named."""

from dataclasses import replace

from tests.draw.jobs import connections, ringed
from tests.draw.shown import texts
from topodiag.draw.matrix import draw_matrix
from topodiag.draw.matrix_fold import SORTS, matrix_of

NODES = [f"node{number:03d}" for number in range(64)]


def test_a_small_job_is_drawn_rank_by_rank() -> None:
    matrix = matrix_of(ringed(NODES[:2], 4))
    assert not matrix.folded
    assert SORTS[matrix.cells[0, 1].sort] == "P2P"
    assert SORTS[matrix.cells[3, 4].sort] == "NET+GDR"
    assert len(matrix.cells) == 8
    assert "7" in texts(draw_matrix(ringed(NODES[:2], 4)))


def test_equal_hosts_are_one_block_with_their_count() -> None:
    job = ringed(NODES, odd="node017")
    matrix = matrix_of(job)
    assert [(band.hosts, band.outlier) for band in matrix.rows] == [(63, False), (1, True)]
    shown = texts(draw_matrix(job, prefix="m"))
    assert "differs" in shown
    assert "x 63" in shown
    assert "B: node017" in shown


def test_a_host_is_odd_only_beside_many_that_are_alike() -> None:
    matrix = matrix_of(ringed(NODES[:2], 4, odd="node001"))
    assert not any(band.outlier for band in matrix.rows)


def test_the_odd_row_and_column_are_framed() -> None:
    assert draw_matrix(ringed(NODES, odd="node017")).count('class="outline"') == 2, "its row and its column"
    assert 'class="outline"' not in draw_matrix(ringed(NODES))


def test_a_thousand_ranks_are_as_small_a_picture_as_eight() -> None:
    assert len(draw_matrix(ringed([f"n{at}" for at in range(1000)]), prefix="m")) < 12_000


def test_one_rank_and_a_job_without_connections_have_no_matrix() -> None:
    assert draw_matrix(ringed(["alone"], 1)) == ""
    assert draw_matrix(replace(ringed(NODES[:2]), connections=connections([], NODES, 8))) == ""


def test_what_a_receiver_prints_counts_where_the_sender_left_no_line() -> None:
    job = replace(ringed(NODES[:2], 2), connections=connections([(0, 2, "NET/IB", 0)], NODES[:2], 2, direction=2))
    matrix = matrix_of(job)
    assert list(matrix.cells) == [(0, 2)]


def test_transports_differ_without_colour() -> None:
    svg = draw_matrix(ringed(NODES[:2], 4, odd="node001", odd_via="NET/Socket"))
    assert "url(#draw-othercross)" in svg
    assert "TCP sockets" in texts(svg)


def test_long_and_hostile_names_stay_inside() -> None:
    names = ["<b>" + "x" * 300, "\x1b[31m" + "y" * 300]
    shown = texts(draw_matrix(ringed(names, 4)))
    assert max(len(text) for text in shown) < 120
