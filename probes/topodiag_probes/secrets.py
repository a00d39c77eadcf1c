"""Takes secrets out of text, whatever it is: a last guard behind what each item keeps.

A secret is known by what names it (`password=`, `--token`, `Bearer`, `://user:word@`), or by its own form (a private
key, a web token, keys of well-known services, long random text). A secret that nothing names and that looks like a word
cannot be known: that is why each item keeps what is read of it and no more.
"""

import re
from itertools import groupby
from typing import Callable, Iterable, List, Match, Set, Tuple

GONE = "<hidden>"
"""What stands where a secret stood."""
_BEHIND = r"\1" + GONE
"""The same behind what names the secret, which is the first group of a pattern."""
SEARCHED = 512 * 1024
"""Characters of suspect lines of one text that are searched; further suspect lines are left out whole."""

# Patterns that few texts need are compiled at their first use, which `re` remembers: together they take 5 ms.
_LONG = (
    r"pass(?:word|wd|phrase|code)|secret|token"
    r"|(?:api|access|private|auth|encryption|license|ssh|client|signing|munge|wandb|comet|ngc|openai)[_-]?key"
)
_SHORT = r"pass|pwd|pw|account[_-]?key|credentials?|creds?|authorization|auth|cookie|jwt|sessionid"
_NAMED = (
    # The short ones are parts of other words: `pass` of `passthrough`, `auth` of `author`.
    # `/etc/passwd` is a file that messages name.
    r"(?i)((?:(?<!/etc/)(?:%s)|(?<![A-Za-z])(?:%s))(?:s|[_-][A-Za-z0-9_-]{1,40}|[0-9]{1,4})?"
    r"\\{0,3}[\"']?[ \t]{0,4}(?:=>|:=|==|[=:>](?![=:])|set (?:by environment )?to )[ \t]{0,4})"
    r"(\\{1,3}\"[^\"\n\\]{1,4096}|\"[^\"\n]{1,4096}\"?|'[^'\n]{1,4096}'?|(?:Bearer |Basic )?[^\s\"'<>&,;]{1,4096})"
    % (_LONG, _SHORT)
)
_OPTION = r"(?i)((?<![A-Za-z0-9-])--?(?:[a-z0-9]{1,24}[_-]){0,3}(?:%s|%s)[ \t]{1,4})([^\s\"'<>-][^\s\"'<>]{0,4095})" % (
    _LONG,
    _SHORT,
)
_SPOKEN = (
    r"(?i)(\b(?:password|passwd|passphrase|secret|api[_ ]key|access[_ ]key)(?: is| was| of)? )"
    r"(?=[^\s]{0,80}[0-9!@#$%^&*])([^\s\"'<>,;]{4,4096})"
)
_SCHEME = (  # `Basic Optimizer` is no login
    r"((?i:\b(?:Bearer|Basic|Negotiate)) )(?=\S{0,64}?(?:[0-9=]|[a-z][A-Z]))([A-Za-z0-9+/_=.~-]{8,8192})"
)
_LOGIN = (
    # A password may hold any sign, `@` and `/` too; the port of an address without a login is none.
    # The kernel's command line names a disk of iSCSI as `iscsi:user:word@server` (dracut.cmdline(7)).
    r"(://|\biscsi:)(?:[^/@:\[\s\"'<>]{0,256}:(?![0-9]{1,5}(?:[/?#,;\s\"']|\Z))(?:(?!://)[^\s\"]){1,1024}@|[^/@\s\"'<>]{1,4096}@)"
)
_CUT_LOGIN = (
    # Quotes are cut at a number of characters, and a login then loses its `@`. The port of an address is none.
    r"(?i)(\b(?:https?|s?ftp|ssh|git|socks5h?)://)[^/@:\[\s\"'<>]{1,256}:(?![0-9]{0,5}(?:\W|\Z)|port\b|[${<%])"
    r"[^\s\"@/`…;]{1,1024}(?=[`…;,)\s]|\Z)"
)
_SIGNED = r"(?i)([?&][a-z0-9-]{0,20}sig(?:nature)?=)[^\s\"'<>&]{8,4096}"
_COMMAND = (
    # What programs take as a password without naming it.
    r"(?i)(\bsshpass[ \t]{1,4}-p[ \t]{0,4}"
    r"|\b(?:docker|podman|nerdctl|helm)\b[^\n]{0,100}?\blogin\b[^\n]{0,400}?[ \t]-p[ \t]{1,4}"
    r"|\bmysql[a-z]{0,10}[ \t][^\n]{0,400}?-p|\b(?:curl|wget)[ \t][^\n]{0,400}?(?:-u|--user)[ \t=]{0,4}[^\s:]{1,128}:"
    r"|\b(?:wandb|munge)\b[^\n]{0,100}?[ :](?=[0-9a-f]{32,128}\b))([^\s\"'-][^\s\"']{0,4095})"
    r"|(\becho[ \t]{1,4})[^\n|]{1,400}?(?=[ \t]{0,4}\|[ \t]{0,4}sudo\b)"
)
_PRIVATE = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S]){0,16384}"
    r"(?:-----END [A-Z0-9 ]{0,40}KEY(?: BLOCK)?-----)?"
)
_FORMS = (
    # A quote may be cut within a token: eight characters are enough where nothing else begins like it.
    r"(?<![A-Za-z0-9_])(?:"
    r"(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{12,20}|ABSK[A-Za-z0-9+/=]{40,512}"
    r"|gh[pousr]_[A-Za-z0-9]{8,255}|github_pat_[A-Za-z0-9_]{8,255}"
    r"|gl(?:pat|rt|dt|ptt|ft|cbt|soat)-[A-Za-z0-9_-]{8,64}"
    r"|(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{8,250}|(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{8,250}"
    r"|sk-[A-Za-z0-9_-]{16,250}|hf_[A-Za-z0-9]{16,64}|(?:r8|gsk|lin_api|wandb_v1)_[A-Za-z0-9_]{16,250}"
    r"|nvapi-[A-Za-z0-9_-]{8,128}|dapi[0-9a-f]{8,32}|ATATT3[A-Za-z0-9_=-]{8,512}|AGE-SECRET-KEY-1[A-Z0-9]{8,80}"
    r"|AIza[0-9A-Za-z_-]{8,40}|ya29\.[0-9A-Za-z_-]{16,512}|npm_[A-Za-z0-9]{30,40}|pypi-[A-Za-z0-9_-]{16,250}"
    r"|hv[sb]\.[A-Za-z0-9_-]{16,250}|dckr_pat_[A-Za-z0-9_-]{8,64}|dop_v1_[a-f0-9]{8,64}|SG\.[A-Za-z0-9_-]{16,100}"
    r"|eyJ[A-Za-z0-9_-]{8,4096}(?:\.[A-Za-z0-9_-]{1,8192}){0,4}"
    r"|\$(?:1|2[aby]|5|6|y|argon2id)\$[A-Za-z0-9./$=,+]{16,256}"
    r")(?![A-Za-z0-9])"
)
_RANDOM = re.compile(r"(?<![A-Za-z0-9+_/])[A-Za-z0-9+_/]{28,4096}={0,2}(?![A-Za-z0-9+_/])")
_NOT_RANDOM = (
    # Symbols of C++, where in a function an address is, and the commits by which model hubs name their folders.
    r"\A_Z[A-Z]{0,3}[0-9][A-Za-z0-9_]*|\+0x[0-9a-f]{1,8}\Z|(?<![A-Za-z0-9+_])[0-9a-f]{40}(?![A-Za-z0-9+_])"
)
_WORD = r"[A-Z]?[a-z]{2,}"
_HARMLESS = (
    r"(?i)(?:true|false|yes|no|on|off|none|null|n/?a|enabled|disabled|unknown|[0-9]{1,3}|[\[\](){}]+|%s)[.,;)\]]{0,2}\Z"
    % re.escape(GONE)
)
_COUNT = r"[\[(]?[+-]?[0-9]{1,9}(?:\.[0-9]{1,20}){0,3}(?:[kKMGB]|e[+-]?[0-9]{1,3})?[.,:;)\]}]{0,3}\Z"


def _named(match: "Match[str]") -> str:
    value = match.group(2).strip("\"'")
    if not value or re.match(_HARMLESS, value):
        return match.group(0)
    if "token" in match.group(1).lower() and re.match(_COUNT, value):  # language models count theirs
        return match.group(0)
    return match.group(1) + GONE


def _random(match: "Match[str]") -> str:
    """Text of capitals, small letters and digits that change from one to the other all the time: a key.

    Names of symbols, parameters and counters are made of words, where they change every three letters at most.
    """
    text = re.sub(_NOT_RANDOM, "", match.group(0))
    kinds = {_kind(char) for char in text}
    if len(text) < 28 or text == text.lower() or len(kinds) < 3:
        return match.group(0)
    if text.count("/") > max(4, len(text) // 10) or text.count("_") > 4:
        return match.group(0)
    runs = sum(1 for _ in groupby(text, _kind))
    of_words = sum(len(word) for word in re.findall(_WORD, text))
    return GONE if len(text) < 2.4 * runs and of_words < 0.65 * len(text) else match.group(0)


def _kind(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.isupper() else 2


_NAMING = ("pass", "pwd", "pw", "secret", "token", "key", "cred", "auth", "cookie", "jwt", "session", "bearer", "basic",
           "negotiate", "login", "curl", "wget", "mysql", "sudo", "wandb", "munge")  # fmt: skip
_BEGINNINGS = (
    "akia", "asia", "aroa", "aida", "absk", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "glrt-",
    "gldt-", "glptt-", "glft-", "glcbt-", "glsoat-", "xox", "xapp-", "k_live_", "k_test_", "whsec_", "sk-", "hf_",
    "r8_", "gsk_", "lin_api_", "wandb_v1_", "nvapi-", "dapi", "atatt3", "age-secret-", "aiza", "ya29.", "npm_", "pypi-",
    "hvs.", "hvb.", "dckr_pat_", "dop_v1_", "sg.", "eyj", "$",
)  # fmt: skip


def _lines_with(text: str, words: Iterable[str]) -> List[Tuple[int, int]]:
    """Where the lines begin and end that hold one of some words: to search 8 MiB for all forms takes half a minute."""
    low = text.replace("İ", "i").lower()  # the one letter whose small form is longer than one character
    found: Set[Tuple[int, int]] = set()
    for word in words:
        place = low.find(word)
        while place >= 0:
            end = low.find("\n", place)
            end = len(low) if end < 0 else end
            found.add((low.rfind("\n", 0, place) + 1, end))
            place = low.find(word, end)
    return sorted(found)


def _in_line(line: str) -> str:
    line = re.sub(_NAMED, _named, line)
    line = re.sub(_OPTION, _BEHIND, line)
    line = re.sub(_COMMAND, lambda found: (found.group(1) or found.group(3)) + GONE, line)
    line = re.sub(_SPOKEN, _BEHIND, line)
    return re.sub(_SCHEME, _BEHIND, line)


def _on_lines(text: str, words: Iterable[str], change: Callable[[str], str]) -> str:
    parts = []
    last = 0
    left = SEARCHED
    for start, end in _lines_with(text, words):
        parts.append(text[last:start])
        left -= end - start
        parts.append(change(text[start:end]) if left >= 0 else GONE)
        last = end
    return "".join([*parts, text[last:]])


_MAY_HOLD = re.compile(
    r"://|iscsi:|PRIVATE KEY|[A-Za-z0-9_+/$-]{12}"
    r"|(?i:%s)" % "|".join(_NAMING)
)
"""What each text with a secret has, of whatever form: most texts have none of it."""


def without_secrets(text: str) -> str:
    """The text with secrets replaced by GONE; it keeps its lines."""
    if _MAY_HOLD.search(text) is None:
        return text
    if "PRIVATE KEY" in text:
        text = re.sub(_PRIVATE, lambda found: GONE + "\n" * found.group(0).count("\n"), text)
    if "://" in text or "iscsi:" in text:
        text = re.sub(_SIGNED, _BEHIND, re.sub(_LOGIN, r"\1", text))
        text = re.sub(_CUT_LOGIN, _BEHIND, text)
    text = _on_lines(text, _BEGINNINGS, lambda line: re.sub(_FORMS, GONE, line))
    text = _on_lines(text, _NAMING, _in_line)
    return _RANDOM.sub(_random, text)


def holds_secret(text: str) -> bool:
    """Whether something in the text is taken for a secret."""
    return without_secrets(text) != text
