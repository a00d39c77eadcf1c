"""The verdict, the hosts and the times of a diagnosis, as parts of its document."""

from __future__ import annotations

from topodiag.model import verdict as model
from topodiag.model.finding import Where
from topodiag.model.identity import Identity
from topodiag.model.timeline import Timeline
from topodiag.report.documents.parts import LEVEL, finding_of, origin_of, place_of
from topodiag.report.documents.types import verdict as shape


def verdict_of(verdict: model.Verdict) -> shape.Verdict:
    """The whole verdict."""
    return shape.Verdict(
        state=verdict.state.value,
        headline=verdict.headline,
        confidence=LEVEL[verdict.confidence],
        first=list(verdict.first),
        causes=[_cause(each) for each in verdict.causes],
        jobs=[
            shape.JobState(name=job.name, state=job.state.value, headline=job.headline, causes=list(job.causes))
            for job in verdict.jobs
        ],
        unrelated=[
            shape.Unrelated(check=each.id, where=place_of(each.where), message=each.message)
            for each in verdict.unrelated
        ],
        ruled_out=[
            shape.RuledOut(what=each.what, by=each.by, evidence=[origin_of(line) for line in each.evidence])
            for each in verdict.ruled_out
        ],
        not_explained=list(verdict.not_explained),
        next_evidence=[
            shape.NextEvidence(what=each.what, where=each.where, command=each.command, why=each.why)
            for each in verdict.next_evidence
        ],
        joined=list(verdict.joined),
    )


def _cause(cause: model.Cause) -> shape.Cause:
    told, price = finding_of(cause.finding), cause.price
    return shape.Cause(
        check=told.id,
        status=cause.status.value,
        severity=told.severity,
        confidence=told.confidence,
        message=told.message,
        where=told.where,
        mechanism=cause.mechanism,
        cost=shape.Price(
            gbs_lost=price.gbs_lost,
            share=price.share,
            step_share=price.step_share,
            step_range=list(price.step_range) if price.step_range is not None else None,
            communication_share=price.communication_share,
            step_said=price.step_said,
            step_says=price.step_says,
            step_agrees=price.step_agrees,
            text=price.text,
        ),
        predicted=_quantity(price.predicted),
        alone=_quantity(price.alone),
        all_gone=_quantity(price.all_gone),
        measured=_quantity(price.measured),
        agreement=price.agreement.value,
        job_share=price.job_share,
        says=price.says,
        fix=told.fix,
        confirm=list(cause.confirm),
        evidence=told.evidence,
        consequences=[_consequence(each) for each in cause.consequences],
        contradicted_by=[origin_of(line) for line in cause.contradicted_by],
    )


def _consequence(each: model.Consequence) -> shape.Consequence:
    where: Where = each.finding.where
    return shape.Consequence(
        check=each.finding.id, where=place_of(where), message=each.finding.message, why=each.why, depth=each.depth
    )


def _quantity(given: model.Quantity | None) -> shape.Quantity | None:
    if given is None:
        return None
    return shape.Quantity(what=given.what, value=given.value, unit=given.unit, source=given.source)


def identity_of(identity: Identity) -> shape.Identity:
    """Who is who."""
    return shape.Identity(
        hosts=[
            shape.Host(
                name=host.name,
                aliases=list(host.aliases),
                sources=list(host.sources),
                boot=host.boot or None,
                ties=dict(host.ties),
            )
            for host in identity.hosts
        ],
        conflicts=[
            shape.Conflict(
                subject=each.subject,
                text=each.text,
                check=each.check or None,
                evidence=[origin_of(line) for line in each.evidence],
            )
            for each in identity.conflicts
        ],
    )


def moments_of(timeline: Timeline) -> list[shape.Moment]:
    """What happened, in order."""
    return [
        shape.Moment(
            time=each.time,
            stamp=each.stamp,
            within_s=each.within_s,
            source=each.origin.source if each.origin else None,
            line=each.origin.line if each.origin else None,
            host=each.host,
            rank=each.rank if each.rank >= 0 else None,
            what=each.what,
            count=each.count,
        )
        for each in timeline.moments
    ]


def clocks_of(timeline: Timeline) -> list[shape.Clock]:
    """The clocks of the sources."""
    return [
        shape.Clock(
            source=each.source,
            host=each.host,
            zone=each.zone or None,
            skew_s=each.skew_s,
            within_s=each.within_s,
            how=each.how,
        )
        for each in timeline.clocks
    ]
