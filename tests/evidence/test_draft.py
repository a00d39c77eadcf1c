"""The node under construction: one device, whatever each source calls it."""

from topodiag.evidence.draft import NodeDraft
from topodiag.model.provenance import Origin

HERE = Origin("x.txt", 1)


def test_keys_given_together_name_one_device() -> None:
    draft = NodeDraft()
    draft.gpu(index=0).offer("numa", 0, HERE)
    draft.gpu(bus_id="0000:1b:00.0").offer("sm", 90, HERE)
    joined = draft.gpu(index=0, bus_id="00000000:1B:00.0")
    assert set(joined.offers) == {"numa", "sm"}
    assert len(list(draft.entities("gpu"))) == 1


def test_a_handle_stays_valid_after_its_device_was_merged() -> None:
    draft = NodeDraft()
    by_name, by_bus = draft.nic(rdma="mlx5_0"), draft.nic(bus_id="0000:18:00.0")
    draft.nic(rdma="mlx5_0", bus_id="0000:18:00.0")
    by_bus.offer("numa", 1, HERE)
    by_name.child("port", 1).offer("state", "ACTIVE", HERE)
    assert by_name.offers.keys() == by_bus.offers.keys() == {"numa"}
    assert by_bus.children.keys() == {("port", 1)}


def test_parts_of_merged_devices_are_merged() -> None:
    draft = NodeDraft()
    draft.gpu(index=0).child("nvlink", 4).offer("state", "active", HERE)
    draft.gpu(uuid="GPU-x").child("nvlink", 4).offer("line_gbs", 26.562, HERE)
    link = draft.gpu(index=0, uuid="GPU-x").child("nvlink", 4)
    assert set(link.offers) == {"state", "line_gbs"}


def test_none_is_no_offer_and_a_reason_is_kept() -> None:
    draft = NodeDraft()
    draft.gpu(index=0).offer("numa", None, HERE)
    draft.gpu(index=0).offer("numa", None, HERE, "NotSupported")
    offers = draft.gpu(index=0).offers["numa"]
    assert [(offer.value, offer.why) for offer in offers] == [(None, "NotSupported")]
