"""Placement: what it explains only after hardware and settings are clean. It never hides them."""

from __future__ import annotations

from topodiag.verdict.interface import Rule


class RankOrder(Rule):
    """A rank order that ignores the topology makes rings return to a node and puts neighbours of all groups apart."""

    causes = ("PLC006",)
    leads_to = ("PLC007", "PLC001", "PLC002", "PLC003", "PLC004")
    because = "the order of the ranks puts them there"


class PlacementCosts(Rule):
    """Groups that span NVLink domains, switches or rails send over slower links. Expected loss equals measured loss."""

    causes = ("PLC001", "PLC002", "PLC003", "PLC004", "PLC005", "PLC006", "PLC007")
    leads_to = ("BEN001", "JOB015", "BEN005", "NET004")
    because = "the ranks are placed so that their traffic takes slower links"
