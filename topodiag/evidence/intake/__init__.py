"""The front door: the only code that decides what a path is. Opens, unpacks and bounds; reads no format.

    gather(paths, stdin=None, quick=False) -> Intake        intake.gather
        any mix of files, folders, archives, patterns, `fixture:NAME` and `-` becomes sorted pieces of evidence
    Intake(paths, pieces, aside, notes, stdin)              intake.pieces
        .of(*kinds) the pieces of these kinds; .beside(*kinds) all others, each with the command that reads it
    Piece(path, kinds, size, coding, sources, host, named, member, root, what, ids, digest, spooled)
        .kind the most telling kind; .name, .words, .command for messages; .is_any(kinds)
    Aside(path, why, command, hint, refused)                what is not read, and why
    KINDS: dict[Kind, Facts(words, command)]                evidence.kinds, the only list of kinds and their commands
    captures(intake) -> Captures(captures, aside)           intake.captures, the pieces of each node together
    evidence_of(capture, intake) -> Evidence                intake.captures, what intake.reader.read_node reads
    spooled(intake, wanted) -> Intake                       intake.pieces, members of archives as plain files
    read_piece(intake, piece) -> Blob                       intake.pieces, the text of one piece, unpacked and bounded

Two captures are never merged into one node unless they lie together and nothing in them speaks against it.
"""
