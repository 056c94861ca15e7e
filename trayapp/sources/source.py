"""A recognized source: one server in the keys of servers.yaml, and the values that the user still has to give.

The rules here find those values (placeholders, descriptions, folders, paths of other machines) and a server's name.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import dropwhile, pairwise, takewhile
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from trayapp.config.read.command import is_relative
from trayapp.config.urls import name_of_url
from trayapp.model.errors import UsageError
from trayapp.model.redact import redacted

Entry = dict[str, Any]
Keys = tuple[str | int, ...]
ValueKind = Literal["string", "number", "boolean", "directory", "file", "path"]

LARGEST = 1_000_000  # characters of pasted text
LARGEST_SNIPPET = 100_000  # characters of pasted text that define servers
LONGEST_LINE = 32_767  # characters of a command line, as in Windows
LONGEST_NAME = 60
# Placeholders that authors write where the reader has to put a value.
_PLACEHOLDER = re.compile(
    r"""(?xi)
    <[^<>]{0,80}> | \$?\{\{[^{}]{1,80}\}\} | \$?\[(?=[^\W\d_]|<)[^\[\]"',]{1,80}\]
    | \[\[[^\[\]"',]{1,80}\]\] | \(\([^()"',|]{1,80}\)\)
    | \[[A-Za-z]+[ ][^\[\]"']{1,80}\] | \((?:your|the)[ ][^()]{1,80}\)
    | \([^\W\d_][\w.:'-]{2,40}(?:[ ][\w.:'-]{1,40}){0,5}\)
    | [\uff08\u3010\u300c\u300a\uff1c\u2039\u00ab][^\uff08-\uff1e]{1,60}[\uff09\u3011\u300d\u300b\uff1e\u203a\u00bb]
    | (?:(?:my|your)(?:[_-][\w-]+|company|domain|org|organization|instance|site|team|tenant|workspace|store|shop
        |user(?:name)?|pass(?:word)?|database|db|token|secret|key|project|account|repo(?:sitory)?)(?:/(?=my|your)|$)){2,}
    | my(?:company|domain|org|organization|instance|site|team|tenant|workspace|store|shop|user(?:name)?|pass(?:word)?
        |database|db|token|secret|key|project|account)
    | [$%@]{0,4}__[A-Z_]{3,40}__[$%@]{0,4}
    | (?=[\w+/=:-]{0,80}(?:\.{3}|\u2026|[*\u2022]{3}|x{4}))[\w+/=:.,*\u2026\u2022-]{1,200} | (?:[\w-]{0,40}[_-])?x{3}
    | change[ _-]?(?:me|it|this) | redacted | placeholder | replace | fix[ _-]?me | tbd
    | (?:fill|set)[ _-]?(?:me|in|me[ _-]?in) | todo | to[ _-]be[ _-][\w -]{2,40}
    | (?:your|my|insert|enter|replace|put|add|paste)[ _-][\w-]+(?:[ ][\w-]+){0,7}[ ]?
    | (?!(?:bearer|basic|token)\ )[\w\ -]{0,60}[ _-]here
    | (?:your|enter|insert|paste)[ ][\w -]{2,60}[,;(][^{}]{1,120}
    | (?:[a-z]+[_-])?value\d? | arg\d | valor | valeur | valore | (?:\.{3}|\u2026)[\w ].{0,200}
    | (?:db|database|schema|user)[_-]name | [a-z]+(?:\|[a-z]+){2,}
    | true(?:\||/|[ ]or[ ])false | false(?:\||/|[ ]or[ ])true | (?:yes|on)(?:\||/|[ ]or[ ])(?:no|off)
    | (?-i:[A-Z]{2,}(?:[ ][A-Z]{2,})*[ ]OR(?:[ ][A-Z]{2,})+) | (?-i:default)(?:s[ ]to|:|[ ]is)?[ ][^ ]{1,60}
    | -----BEGIN[ ][A-Z ]{3,40}-----(?=[\s\S]{0,4000}?(?:\.{3}|\u2026|your|<))[\s\S]{0,4000}
    | (?:\+|(?:[a-z]{1,12}[_-]){0,3})(?:abcdef|123456){2,} | ([01])\1{7}(?:-\1{4}){3}-\1{12}
    | [a-z][a-z0-9+.-]{1,20}://(?:\.{3}|\u2026) | (?:[\w-]+\.)*example\.(?:com|net|org)(?::\d+)?
    | (?-i:[A-Z_]*(?:PATH|LOCATION|DIR(?:ECTORY)?|FOLDER|URL|NAME|ID|KEY|TOKEN)_(?:OF|TO|FOR|FROM)_[A-Z0-9_]+)
    | (?-i:abcd[ -]?efgh(?:[ -]?ijkl(?:[ -]?mnop)?)?)
    | the[_-][\w-]*(?:token|key|secret|password) | (?:optional|required)[ ,:_-].{1,200}
    | .{0,200}[ ](?:\(|//|\#)[ ]?optional\b.{0,200} | [^|]{1,80}[ ]\|[ ][^|]{1,80}
    | (?:the[ ])?(?:path|url|address|name|key|token)[ ](?:to|of|for)[ ].{1,60}
    | (?:keychain|secrets?|vault|1password|bitwarden):(?://)?[\w./@-]{1,80}
    | (?:get|obtain(?:ed)?|cop(?:y|ied)|generated?|found|find|taken?)[ ](?:\w+[ ]){0,4}(?:from|at|in|on)[ ].{1,80}
    | (?:from|in)[ ](?:the|your)[ ].{1,60}
    | (?P<sign>[#@%|!]{1,2})[A-Za-z][\w -]{1,40}(?P=sign)
    | (?:.{1,80}[ (,])?(?:such[ ]as|e\.?g\.?|for[ ]example)[ ,:].{1,200}
    """
)
# Placeholders in the middle of a text: `<<TOKEN>>`, `https://<region>.example.com`, `ntn_****`, `localhost:{port}`.
_INSIDE = re.compile(
    r"<<[^<>]{1,80}>>|\u2022{3,}|(?:(?<=^)|(?<==)|(?<=Bearer ))\$\([^()]{1,80}\)$"
    r"|<[^\W\d_][^<>]{0,80}>|\b[A-Za-z]{1,12}_\*{3,}"
    r"|\$?\{\{ ?[A-Za-z_][\w-]*(?:[ .][A-Za-z_][\w-]*){0,5} ?\}\}"
    r"|(?<![^\W_])(?<![${])(?<![Dd]river=)(?!\{[^{}]*(?:ODBC|SQL Server|FreeTDS))"
    r"#?\{[A-Za-z][\w ./-]{0,60}\}(?!\})|\[\[[A-Za-z][\w -]{1,40}\]\]"
    r"|\[[A-Za-z]{2,20}(?:[ _-][A-Za-z]{2,20}){1,12}\]|\[[A-Z]{2,20}(?:[ _-][A-Z0-9]{1,20}){1,12}\]"
    r"|\$?\[[A-Z]{3,20}\]|(?<=[./:=@])\[[a-z]{2,20}\]"
    r"|(?<=/):[a-z][\w-]{0,40}(?=[/?#]|$)"
    r"|\$\{(?:workspace(?:Folder|Root|Dir)?(?::[\w-]+)?|PWD|(?:[A-Z]+_)?(?:PLUGIN|PROJECT)_(?:ROOT|DIR|DATA)|project(?:Root|Dir|Path)|extensionPath|__dirname)\}"
    r"|(?:(?<![\w./~-])|(?<=://)|(?<=:///))(?:[A-Za-z]:)?/(?:absolute/)?path/to/[\w./-]+(?<!\.)|(?<=github\.com/)(?:OWNER|ORG|USER|USERNAME)(?=/)"
    r"|(?<![\w-])[a-z]{2,6}[_-](?:API_)?(?:KEY|TOKEN|SECRET)(?![\w-])"
    r"|\$\{[a-z]\w*(?:\.[\w-]+)+\}|\$\{[A-Za-z]\w*-[A-Z]\w*\}"  # Nix's and Terraform's: not the name of a variable
    r"|(?<=@)v?(?:[xX]\.[xX](?:\.[xX])?|X\.Y\.Z)(?![\w.])|(?<=:)(?:\*{3,}|\.{3})(?=@)"
    r"|(?<=[\w\]]:)PORT(?=[/?#]|$)|%[A-Za-z_]\w{2,}%(?:\\[^:,;\"]*)?|%(?i:cd)%(?=[:/\\]|$)|(?<=://)[A-Z][A-Z_-]*[A-Z](?=[:/]|$)"
)
# A placeholder in parentheses, as part of an address.
_ROUND = re.compile(r"(?<=[/@:.=?&])\([^\W\d_][\w.-]{2,40}(?:[ ][\w.-]{1,40}){0,5}\)(?=[/.:@?&#]|$)")
# The host of an address, with or without a scheme, and words in capitals within the host. Such a word stands for the
# reader's own: no host has `_` in its name (RFC 1123), and hosts are written in small letters.
_HOST = re.compile(
    r"://(?:[^/\s@]*@)?([\w.-]+)|^([\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|dev|app|cloud|ai|co))(?=[:/]|$)"
)
_CAPITALS = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z][A-Z0-9]{0,30}(?:[_-][A-Z0-9]{1,30}){1,8}|(?!API|MCP|WWW)[A-Z]{3,})(?![A-Za-z0-9])"
)
# A placeholder with one bracket missing: `<API_KEY`, `api_key}`, `{{API_KEY}`. `${` belongs to a reference.
_DAMAGED_NAME = r"(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?:your|my)[-_ ][\w -]{2,40}|[a-z]{2,}(?:[-_][a-z]{2,}){1,4})"
_DAMAGED_WORD = r"[A-Za-z][\w-]{1,40}(?=[/?&#]|$)"  # after an opening bracket
_DAMAGED = {
    (opening, closing): re.compile(
        rf"(?<![\w${{\[<-])[{re.escape(opening)}]{{1,2}}(?:{_DAMAGED_NAME}|{_DAMAGED_WORD})[{re.escape(closing)}]?(?![\w{re.escape(closing)}-])"
        rf"|(?<![\w$.{{\[<-]){_DAMAGED_NAME}[{re.escape(closing)}]{{1,2}}(?![=\d])"  # `acme-mcp>=1.0` is a version
    )
    for opening, closing in ("<>", "{}", "[]")
}
_YOUR = re.compile(r"(?<![A-Za-z0-9_.-])(?:[A-Z_]*YOUR_[A-Z][A-Z0-9_]*|YOUR-[A-Z][A-Z0-9-]*)(?![A-Za-z0-9_-])")
OPTIONAL = re.compile(r"(?i)(?<![a-z])(?:optional|leave (?:it |this )?(?:empty|blank|out|unset))(?![a-z])")
REQUIRED = re.compile(r"(?i)(?<![a-z])(?<!not )(?:required|mandatory)(?![a-z])")
_NOUN = re.compile(r"(?:[A-Z]+_)*(?:TOKEN|KEY|SECRET|PASSWORD)")  # a noun in place of a secret
# Words that end in what they stand for, such as `cloud-token`, `a-long-random-secret-key`, `org_url`.
_WORDS = re.compile(r"(?i)(?:[a-z]+[-_ ]){1,6}(token|key|secret|password|passwd|url|id|email|user(?:name)?)")
# Words that only say what belongs there. Other words, such as `admin`, may be real values.
_UNKNOWN = re.compile(
    r"(?i)(?:[a-z]+[-_ ])*(?:token|key|secret|pass(?:word|wd)?|ur[li]|id|e?mail|user(?:name)?|host(?:name)?|name|domain"
    r"|endpoint|address|project|account|region|database|path|port|org(?:anization)?|workspace|team|tenant|subdomain|slug|uuid"
    r"|instance|company|customer|ip)"
)
_NOUNS = re.compile("[A-Z]{2,12}(?:NAME|TOKEN|KEY|SECRET|PASSWORD|URL|HOST|ID)")  # two nouns in one word
_NOUN_ELSEWHERE = re.compile("(?:令牌|密码|キー|トークン|パスワード|토큰|비밀번호)$")
# A word in a secret that shows that the secret is an example.
_SAMPLE = re.compile(r"(?i)(?<![a-z])(?:example|sample|dummy|fake|placeholder)(?![a-z])")
# The user and the password that authors write into addresses of databases.
_SOMEBODY = r"(?:[a-z]{1,10}[_-]?)?user(?:name)?\d?"
_SECRET_WORD = r"(?:[a-z]{1,10}[_-]?)?(?:pass(?:word|wd)?|pwd|secret)\d?"
# A database on the user's own machine or network may really have such a password.
_OWN_HOST = (
    r"(?:localhost|127\.|0\.0\.0\.0|\[|host\.docker\.internal|(?:db|postgres|mysql|redis|mongo(?:db)?|neo4j)[:/])"
)
_FOLDER = re.compile(r"\$\{(\w+)\}")  # a variable; as a placeholder, the folder that an editor or a shell has open
_FOREIGN_NOUN = (  # in Portuguese and Spanish, French, German, Italian
    r"(?:api[-_](?:key|token)|servidor|chave|clave|senha|contrase[nñ]a|usu[aá]rio|proje[ct]?to|proyecto|dom[ií]nio|empresa"
    r"|loja|tienda|sit[ei]o|cuenta|conta|inst[aâ]ncia|servi(?:cio|[cç]o)|organiza[cç](?:ion|ao)|correo|email"
    r"|serveur|cl[eé]f?|mot[-_]de[-_]passe|utilisateur|projet|domaine|jeton|boutique|entreprise|compte|identifiant"
    r"|schl(?:ue|ü)ssel|pass?wort|benutzer(?:name)?|projekt|firma|konto|instanz"
    r"|chiave|utente|progetto|azienda|istanza|sito)(?![a-z])"
)
_NOUN_ANYWHERE = (
    r"(?:api|key|token|secret|password|server|host|workspace|project|domain|user(?:name)?|name|app|url|id|org|tenant"
    r"|instance|client|service|backend|frontend|cloud)"
    r"(?![a-z])"
)
# "Your" in these languages at the start of a word: `seu-workspace.acme.com`, `VOTRE_CLE`. Words that are also parts of
# names, such as `tu` or `vos`, count only before a noun.
_YOUR_ELSEWHERE = (
    r"(?<![a-z0-9])(?:seu|sua|votre)[-_](?=[a-z]{2})"
    rf"|(?<![a-z0-9])(?:vos|deine?|ihre?|tu[ao])[-_](?=(?:[a-z]+[-_])?(?:{_FOREIGN_NOUN}|{_NOUN_ANYWHERE}))"
    r"|(?<![a-z0-9])(?:seu|sua|tu|votre|deine?|tuo)(?:dom[ií]nio|domaine|domain|servidor|serveur|server|projekt|pro(?:j|y)e[ct]?to"
    r"|empresa|loja|tienda|inst[aâ]ncia|instanz|site|sitio|sito)(?![a-z])"
    rf"|(?<![\w.-])tu[-_](?={_FOREIGN_NOUN}|{_NOUN_ANYWHERE})|(?<![\w.-])(?:su|ton|ta|tes)[-_](?={_FOREIGN_NOUN})"
)
# A word that is the author's example: `yourcompany.com`, `oh.YOUR_TOKEN`, `api-xxxxxxxx-xxxx`. YOURLS, a program, does
# not count.
_EXAMPLE = re.compile(
    rf"(?i){_YOUR_ELSEWHERE}|"
    r"(?:(?<![a-z0-9])|(?<![a-z0-9])0x)your(?!s(?![a-z])|self|ls)(?:[-_.@][a-z0-9]|[a-z0-9])"
    r"|(?<![a-z0-9])(?:x{3,}|y{3,}|z{3,})(?![a-z0-9])|(?<![\w.])\d{1,3}\.(?:\d{1,3}\.x\.|\d{1,3}\.\d{1,3}\.|x\.x\.)x(?![\w.])|(?<![\d.])(?:192\.0\.2|198\.51\.100|203\.0\.113)\.\d{1,3}(?![\d.])"
    r"|(?<=://)(?:url|host(?:name)?|domain|address|endpoint|connection[-_]string|(?:api|mcp|server)[-_]?(?:url|host|address))(?=[:/?]|$)"
    rf"|(?<![a-z0-9])(?:{_SOMEBODY}:{_SECRET_WORD}@|(?<=://)[\w.-]*:{_SECRET_WORD}@(?!{_OWN_HOST}))"
    rf"|(?<![\w.+-])[\w.+-]+@[\w.-]+:{_SECRET_WORD}(?![\w.@/-])"
    r"|(?<![\w.+-])(?:you|tu|seu|votre|deine?|ihre?|tuo|user(?:name)?|usuario|some(?:one|body)|(?:john|jane)[._]?doe)@[\w-]+(?:\.[a-z]{2,})+(?![\w.-])"
    r"|(?<![\w.+-])[\w.+-]+@(?:my-[\w-]+|project)\.[\w.-]+"
    r"|(?<![\w.+-])[\w.+-]+@(?-i:(?:[A-Z][A-Z0-9]*[_-])*(?:HOST(?:NAME)?|SERVER|IP|ADDRESS|DOMAIN))(?![\w.@-])"
    r"|(?<![\w.@-])[a-z]+-name\.(?:[\w-]+\.)+(?:com|net|org|io|dev|app|cloud|ai)(?=[:/?]|$)"
    r"|(?<![\w.+-])[\w.+-]+@(?:my-?)?(?:company|domain|email|corp|organization|host|server)\.(?:com|net|org)(?![\w.-])"
    r"|(?<![\w.@-])(?:[\w-]+\.){1,3}(?:my-?)?(?:company|domain|organization)\.(?:com|net|org)(?=[:/]|$)"
    r"|(?<![\w.@-])(?:my-?(?:company|domain|org|organization|instance|site|team|tenant|workspace|store|shop|server|host)"
    r"|company|domain|subdomain|instance|tenant)\.(?:[\w-]+\.){0,4}(?:com|net|org|io|dev|app|cloud|local)(?=[:/?]|$)"
)
# "Your", "path", "key", "here" and "user name" in other languages, most of them in Chinese, Japanese and Korean; e-mail
# addresses at the domains that RFC 2606 reserves.
_EXAMPLE_ELSEWHERE = re.compile(
    "(?i)(?<!\\w)(?:사용자[ _]?(?:이름|명)|用[户戶]名|ユーザー名|имя[ _]пользователя)(?!\\w)"
    r"|[-_](?:anda|kamu)(?![\w.])|(?<![a-z])masukkan[-_][a-z]|[-_]di[-_]?sini(?![a-z])"
    "|(?<!\\w)(?:ваш[аеи]?|твой|твоя|jouw|senin|sizin)[-_]\\w|anahtar[ıi]n[ıi]z(?!\\w)|(?<!\\w)din[-_]api(?!\\w)"
    "|(?:你|您)(?:自己)?(?:使用)?的|路径|密钥|填写|可选|あなたの|(?<!\\w)(?:絶対|フル)?パス(?=[/\\\\])|경로|여기에"
    r"|(?<![\w])(?:tw[oó]j[ae]?)[_-]\w|(?<![a-z0-9])(?:COLE|VOTRE|DEINE?|IHRE?)_[A-Z_]+"
    r"|(?<![\w.+-])[\w.+-]+@example\.(?:com|net|org)(?![\w.-])"
    r"|(?<=://)[^/\s:.?#<>{}]*[^\x00-\x7f][^/\s:.?#<>{}]*(?=[:/?#]|$)"  # a word in place of a host
)
_IN_A_ROW = re.compile(r"(?i)abcdefgh|a1b2c3d4|(?<!\d)(?:1-?2-?3-?4-?5-?6-?7-?8|9-?8-?7-?6-?5-?4-?3-?2)")
# Hosts that no server can have (RFC 2606), and hosts that authors name like them. A server's `url` may really have a
# host of the latter kind, so only the first pattern applies to it.
_RESERVED_HOST = re.compile(r"(?i)https?://(?:[\w-]+\.)*(?:example\.(?:com|net|org)|example|invalid)(?:[:/?#].*)?")
_EXAMPLE_ADDRESS = re.compile(
    r"(?i)https?://(?=[\w.-]*(?<![a-z0-9])example(?![a-z0-9]))[\w.-]+(?::\d+)?(?:/[^\s\"']*)?"
)
_PLACEHOLDER_PATH = re.compile(
    r"(?i)(?:[A-Z]:|drive:|~|\.{1,2})?[/\\]*(?:[^/\\\s:=]{1,40}[/\\]+){0,6}(?:(?:absolute|abs|full)[_-]+)?(?:path|dir|folder|route)[/\\_-]+to(?![a-z]).*"
    r"|(?:[A-Z]:)?[/\\]+(?:(?:absolute|abs|full|complete|actual|real|some|repo|project)[/\\_-]+)?path(?:[/\\_-].*)?"
    r"|(?:(?:absolute|abs|full|complete|actual|real|some|repo|project)[/\\_-]+)?path[/\\].+"
    r"|(?:[A-Z]:)?[/\\]+(?:absolute|another|other|some|directory|location/of|where/(?:you|it|the))[/\\].*"
    r"|(?:[A-Z]:)?[/\\]+(?:(?:полный|абсолютный|повний|absoluter?|vollständiger?|pełna)[/\\_-])?(?:ruta|chemin|caminho|percorso|pfad|ścieżka|sciezka|putanja|шлях|путь|cesta|sökväg|polku)[/\\].*"
    r"|(?:[A-Z]:)?[/\\]+(?:votre|mi|tu|su|seu|sua|meu|ihr|dein|mein)[/\\](?:ruta|chemin|caminho|pfad|projet|proyecto|projeto|projekt)\b.*"
    r"|(?:[A-Z]:)?[/\\](?:your\b|tw[oó]ja?[_-]).*|[/\\]?(?-i:(?:[A-Z]+_)+(?:PATH|DIR|FOLDER)|PATH_TO_[A-Z_]+)[/\\].*"
    r"|%[A-Za-z_]\w+%[/\\].*"
    r"|(?:[A-Z]:)?[/\\]+(?:Users|home)[/\\]+(?:you|user|name|username|your[\w-]*|<[^>]*>)(?:[/\\].*)?"
)
_SPACED_PATH = re.compile(r"(?:[A-Z]:|~)?[/\\][^\s=]+(?: [^\s=/~-][^\s=]*)+")  # `C:/Program Files/...`
_GENERIC = re.compile(
    r"(?i)(?:^(?:mcp[-_.]?server|server|mcp)[-_.])|(?:[-_.](?:mcp[-_.]?server|server[-_.]?mcp|mcp|server)$)"
)


class UnclearSourceError(UsageError):
    """Raised if a text names no server, or is unclear about it. The hint says what to do."""

    code = "unclear_source"


class TemplateError(UnclearSourceError):
    """Raised for a text that shows several ways at once, such as every transport of a server. No part may be used."""


def refuse_large(length: int) -> None:
    """Raise UnclearSourceError for more than LARGEST_SNIPPET characters: no user would read them before approving."""
    if length > LARGEST_SNIPPET:
        raise UnclearSourceError(f"Its servers have {length:,} characters", "Paste the snippet of one server")


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that the user has to give. `keys` lead to it in the entry; `placeholder` is the text to replace.

    A value that is `shared` is given once for all places of that name.
    """

    name: str
    keys: Keys
    placeholder: str
    description: str = ""
    secret: bool = False
    required: bool = True
    choices: tuple[str, ...] = ()
    default: str = ""
    kind: ValueKind = "string"
    least: float | None = None
    most: float | None = None
    multiple: bool = False  # several values in one text, separated as in PATH
    shared: bool = False
    stays: bool = False  # if the user gives no value, the author's empty text stays

    def hint(self) -> str:
        """Return a note for the user about the value's form, "" if there is none."""
        limits = [f"at least {self.least:g}"] if self.least is not None else []
        limits += [f"at most {self.most:g}"] if self.most is not None else []
        several = [f"several: separated by {os.pathsep}"] if self.multiple else []
        return ", ".join([*limits, *several])

    def checked(self, text: str) -> str:
        """Return a value as the server gets it: a path without `~`, several values without blanks around them.

        Raises UsageError for a wrong choice or number, and for a path that is not absolute.
        """
        parts = [part.strip() for part in re.split(rf"[{os.pathsep}\n]", text)] if self.multiple else [text]
        return os.pathsep.join(self._checked(part) for part in parts if part or not self.multiple)

    def _checked(self, text: str) -> str:
        if not text:
            return text
        if self.choices and text not in self.choices:
            raise UsageError(f"{self.name} is one of: {', '.join(self.choices)}", "Give one of them")
        if self.kind == "number":
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            low = -math.inf if self.least is None else self.least
            high = math.inf if self.most is None else self.most
            if not (math.isfinite(number) and low <= number <= high):
                raise UsageError(", ".join(filter(None, (f"{self.name} is a number", self.hint()))), "Give another one")
        if self.kind in ("directory", "file", "path"):
            try:
                path = Path(text).expanduser()
            except RuntimeError:
                path = Path(text)
            if not path.is_absolute():
                what = f"{self.name} is" if self.kind != "path" else f"{text} is not"
                of = f" of a {self.kind}" if self.kind != "path" else ""
                raise UsageError(f"{what} the whole path{of}", "Begin it with / or ~")
            return str(path)
        return text


@dataclass(frozen=True, slots=True)
class Source:
    """One recognized server.

    `entry`: in the keys of servers.yaml. `kind`: the form it was read from, for people. `left_out`: ignored keys.
    """

    name: str
    entry: Entry
    kind: str
    wants: tuple[Variable, ...] = ()
    left_out: tuple[str, ...] = ()
    description: str = ""
    more: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[Mapping[str, Any], ...] = ()  # as listed by its author
    more_tools: bool = False  # True if the author's list is incomplete
    run_first: tuple[str, ...] = ()  # lines before the command that install something: only the user runs them


def with_passed(entry: Entry) -> Entry:
    """Return the entry of a container with an empty variable for each `-e NAME`, whose value comes from outside.

    A `-e NAME=VALUE` becomes `-e NAME` and a variable if the value contains a password. Other entries stay unchanged.
    """
    own = {
        pair[1]: pair[2]
        for word in _options(entry)
        if (pair := _ASSIGNED.fullmatch(word)) and CONNECTION.search(pair[2])
    }
    if own:  # a container's variable with a password is passed in the environment, not on the command line
        args = [name if (name := str(word).partition("=")[0]) in own else word for word in entry["args"]]
        entry = {**entry, "args": args, "env": {**(entry.get("env") or {}), **own}}
    names = [name for name in _passed(entry) if name not in (entry.get("env") or {})]
    return {**entry, "env": {**(entry.get("env") or {}), **dict.fromkeys(names, "")}} if names else entry


def with_home(source: Source, home: Path) -> Source:
    """Return a source with the home folder in place of `~` and `$HOME`, as a shell would do.

    Placeholders stay, and so do paths in a container or on another machine, where the home folder differs. In `command`
    and `cwd`, `$HOME` becomes `~`.
    """
    program = program_of(str(source.entry.get("command") or ""))
    taken = {one.keys for one in source.wants}

    def own(keys: Keys, text: Any, pattern: re.Pattern[str]) -> Any:
        return pattern.sub(lambda found: str(home), text) if isinstance(text, str) and keys not in taken else text

    entry = dict(source.entry)
    if "args" in entry and program not in REACHING:
        entry["args"] = [own(("args", at), word, _TILDE) for at, word in enumerate(entry["args"] or [])]
    for key in {"command", "cwd"} & entry.keys():  # servers.yaml itself reads `~` in these
        entry[key] = _SHELL_HOME.sub("~", entry[key]) if isinstance(entry[key], str) else entry[key]
    if "env" in entry and program not in REACHING | CONTAINERS:
        entry["env"] = {name: own(("env", name), text, _TILDE_LISTED) for name, text in (entry["env"] or {}).items()}
    return replace(source, entry=entry)


_SHELL_HOME = re.compile(r"\A\$HOME(?=[/\\])")
_TILDE = re.compile(r"(?<![^=,])(?:~|\$HOME)(?=[/\\])")
_TILDE_LISTED = re.compile(r"(?<![^=,:])(?:~|\$HOME)(?=[/\\])")  # also in a list of paths
CONTAINERS = frozenset(("docker", "podman"))
SHELLS = frozenset(
    ("sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell", "pwsh", "eval", "exec", "sudo", "env", "cd")
)
PODS = frozenset(("kubectl", "oc"))
REACHING = frozenset(("ssh", "wsl", *PODS))  # they run the command in their arguments on another system
_STARTS = ("command", "args", "url")


def launch_of(entry: Entry) -> Entry:
    """Return an entry without `type` and empty values.

    Entries with equal results start the same server in the same way.
    """
    return {key: value for key, value in entry.items() if value and key != "type"}


def start_of(entry: Entry) -> Entry:
    """Return an entry's command, args and url. Entries with equal results start the same server.

    `-y` and `--yes` of npx and bunx are left out.
    """
    start = launch_of({key: value for key, value in entry.items() if key in _STARTS})
    if program_of(str(entry.get("command") or "")) in ("npx", "bunx"):
        start["args"] = [word for word in entry.get("args") or [] if word not in ("-y", "--yes")]
    return start


def given_names(source: Source) -> set[str]:
    """Return the names, in lower case, of the variables and headers that a source gives its server."""
    return {str(name).lower() for place in ("env", "headers") for name in source.entry.get(place) or {}}


def with_variants(source: Source, variants: Sequence[Source]) -> Source:
    """Return a source that also asks for the variables and headers of other ways to start the same server.

    A variable or header that one way lacks is optional: A and B for `A=... x` and `B=... x`. A way without any counts
    only if all ways have the same `kind`. The source is unchanged if a variable is a placeholder in one way and has
    another value in another. Raises TemplateError if the ways differ in more than one plain word.
    """
    given: list[set[Keys]] = [
        {(place, str(name)) for place in _PAIRS for name in one.entry.get(place) or {}} for one in variants
    ]
    sets = given if len({one.kind for one in variants}) == 1 else list(filter(None, given))
    needed = set.intersection(*sets) if sets else set()
    offered: dict[Keys, tuple[str, ...]] = {}
    for keys in needed:
        holding = [one for one, own in zip(variants, given, strict=True) if keys in own]
        asking = [keys in {want.keys for want in one.wants} for one in holding]
        values = tuple(dict.fromkeys(str(one.entry[str(keys[0])][keys[1]]) for one in holding))
        if len(values) > 1 and not any(asking):
            offered[keys] = values
        elif len(values) > 1 and not all(asking):
            return source  # ways with settings of their own, which do not mix
    source = replace(source, wants=(*source.wants, *_choices(source, offered)))
    entry = source.entry
    wants = list(source.wants)
    for one in variants:
        for want in one.wants:
            place, name = str(want.keys[0]), want.keys[-1]
            if place in _PAIRS and name not in (entry.get(place) or {}):
                entry = {**entry, place: {**(entry.get(place) or {}), str(name): one.entry[place][name]}}
                wants.append(want)
    own = (replace(one, required=one.required and (one.keys[0] not in _PAIRS or one.keys in needed)) for one in wants)
    return replace(source, entry=entry, wants=tuple(own))


def _choices(source: Source, offered: Mapping[Keys, tuple[str, ...]]) -> Iterator[Variable]:
    """Yield a Variable with choices if the ways to start a server differ only in one plain word.

    `offered`: keys -> the values in which the ways differ. Raises TemplateError if they differ in more.
    """
    for keys, values in offered.items():
        told = [f"{keys[1]}={value}" for value in values]
        if len(offered) > 1 or not all(map(_CHOICE.fullmatch, values)) or redacted(" ".join(told)) != " ".join(told):
            named = ", ".join(str(keys[1]) for keys in offered)
            title = f"This shows several ways to run {source.name}, each with its own values ({named})"
            raise TemplateError(title, "Paste one")
        own = str(source.entry[str(keys[0])][keys[1]])
        yield Variable(str(keys[1]), keys, own, f"one of {', '.join(values)}", choices=values)


_CHOICE = re.compile(r"[A-Za-z][\w-]*|\d{1,5}")
_PAIRS = ("env", "headers")


def without_env(entry: Entry) -> Entry:
    """Return an entry for `env NAME=VALUE PROGRAM` that starts PROGRAM and has NAME among its variables.

    Other entries stay unchanged.
    """
    words = [str(entry.get("command") or ""), *map(str, entry.get("args") or [])]
    count = 1 + sum(1 for _ in takewhile(re.compile(r"[A-Za-z_]\w*=").match, words[1:]))
    if words[0] not in ("env", "/usr/bin/env") or not 1 < count < len(words):
        return entry
    own = dict(word.split("=", 1) for word in words[1:count])
    return {**entry, "command": words[count], "args": words[count + 1 :], "env": {**own, **(entry.get("env") or {})}}


def with_words_apart(entry: Entry) -> Entry:
    """Return an entry whose options, package and arguments are in one word (`"-y pkg run"`) with several words instead.

    Other entries stay unchanged.
    """
    words = [str(entry.get("command") or ""), *map(str, entry.get("args") or [])]
    package = package_of(words)
    for at, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-{1,2}[\w-]+(?: [\w@./:=-]+)+|[\w@][\w@./:-]*(?: [\w@./:=-]+)+", word) and (
            word == package or (word.startswith("-") and not package)
        ):
            return {**entry, "args": [*words[1:at], *word.split(), *words[at + 1 :]]}
    return entry


_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def _passed(entry: Mapping[str, Any]) -> list[str]:
    return [name for name in _options(entry) if re.fullmatch(r"[A-Za-z_]\w*", name)]


def _options(entry: Mapping[str, Any]) -> list[str]:
    """Return the values of a container's `-e` options: `NAME=VALUE`, or `NAME` for a variable that is passed on.

    [] for another program.
    """
    words = [str(entry.get("command") or ""), *map(str, entry.get("args") or [])]
    if PurePosixPath(words[0]).name not in ("docker", "podman") or (image := package_of(words)) not in words:
        return []
    return [name for option, name in pairwise(words[: words.index(image)]) if option in ("-e", "--env")]


def with_value(entry: Entry, variable: Variable, value: str) -> Entry:
    """Return the entry with `value` in place of a variable's placeholder.

    If `value` is empty, remove a variable or header (unless it `stays`), or an optional argument.
    """
    head, *rest = variable.keys
    if not rest:
        return {**entry, str(head): _replaced(str(entry.get(str(head), "")), variable, value)}
    inner = entry[str(head)]
    key = rest[0]
    if isinstance(inner, list):
        assert isinstance(key, int)
        return {**entry, str(head): _words_with(inner, key, variable, value)}
    changed = {name: _replaced(one, variable, value) if name == key else one for name, one in inner.items()}
    if not value and not variable.stays:
        del changed[key]
    kept = {name: one for name, one in entry.items() if name != head}
    return kept | ({str(head): changed} if changed else {})


def _replaced(text: str, variable: Variable, value: str) -> str:
    return _bounded(variable.placeholder).sub(lambda found: value, text) if variable.placeholder else value


def _bounded(mark: str) -> re.Pattern[str]:
    """Return a pattern that matches a placeholder as a whole word, but not as a name before `=` (`token=token`)."""
    before, after = (r"(?<!\w)" if mark[0].isalnum() else ""), (r"(?![\w=])" if mark[-1].isalnum() else "")
    return re.compile(f"{before}{re.escape(mark)}{after}")


def own_part(source: Source, variable: Variable, text: str) -> str:
    """Return a user's value without the text around its placeholder, if the user typed that text, too.

    For `https://HOST/mcp`, `https://a.test/mcp` becomes `a.test`.
    """
    if not variable.placeholder:
        return text
    whole: Any = source.entry
    for key in variable.keys:
        whole = whole[key]
    halves = _bounded(variable.placeholder).split(str(whole), maxsplit=1)
    if len(halves) < 2 or not re.search(r"[^\w.-]$", halves[0]):
        return text
    others = [one.placeholder for one in source.wants if one.keys == variable.keys and one.placeholder]
    mark = re.compile("|".join(map(re.escape, sorted(others, key=len, reverse=True))))
    before, after = (".+?".join(map(re.escape, mark.split(half))) for half in halves)
    found = re.fullmatch(f"{before}(.+){after}", text) or re.fullmatch(f"{before}(.+)", text)
    return found[1] if found else text


def _words_with(words: Sequence[str], at: int, variable: Variable, value: str) -> list[str]:
    """Return the words of a command line with a variable's value.

    A value for `NAME=` is appended. Several values become several words if the placeholder is the whole word. Without a
    value, a word that is optional or wholly a shared placeholder is removed, together with the option before it.
    """
    whole = variable.shared and words[at] == variable.placeholder
    is_named = variable.placeholder == "" and words[at].endswith("=")  # `NAME=`, with nothing after it
    if is_named and (value or (at and words[at - 1] in ("-e", "--env"))):
        return [*words[:at], words[at] + value, *words[at + 1 :]]
    if not value and (whole or not (variable.shared or variable.required)):
        before = words[at - 1] if at else ""
        option = before.startswith("-") and "=" not in before
        return [*words[: at - 1 if option else at], *words[at + 1 :]]
    several = whole and variable.multiple
    values = value.split(os.pathsep) if several else [_replaced(words[at], variable, value)]
    return [*words[:at], *values, *words[at + 1 :]]


def wanted(entry: Entry, inputs: Mapping[str, Mapping[str, Any]] | None = None) -> tuple[Variable, ...]:
    """Return a Variable for each value that an entry leaves to the user, in the order in which the user is asked.

    Such a value is or contains a placeholder or an author's example, is empty, or only describes what belongs there.
    `inputs`: text that stands for an input of the snippet (`${input:ID}`) -> the snippet's definition of that input.
    """
    found: list[Variable] = []
    passed = _passed(entry)
    program = program_of(str(entry.get("command") or ""))
    package = package_of([str(entry.get("command") or ""), *map(str, entry.get("args") or [])])

    def add(name: str, keys: Keys, text: Any, secret: Callable[[str], bool], *, stands: bool = False) -> None:
        if not isinstance(text, str):
            return
        for mark, definition in (inputs or {}).items():
            if mark in text:
                found.append(_input(mark, definition, keys))
        own = re.sub(r"^-{0,2}\w[\w.-]*=", "", text) if keys[0] == "args" else text
        is_mark = stands or (own != "" and _names_itself(name, own))
        marks = [own] if is_mark else placeholders_in(own) or placeholders_in(text)
        if not marks and keys[0] in ("args", "env") and (inside := list(_inside_json(own))):
            found.extend(
                Variable(key, keys, mark, f"in place of {mark}", secret=_is_secret(key, f"{key}={mark}", mark))
                for key, mark in inside
            )
            return
        known = _RESERVED_HOST.fullmatch if keys == ("url",) else _EXAMPLE_ADDRESS.search
        for mark in marks or ([example[0]] if (example := known(text)) else []):
            if folder := _FOLDER.fullmatch(mark):  # one value, wherever it occurs
                found.append(Variable(folder[1], keys, mark, kind="directory", shared=True))
                continue
            # Needed: a value with a placeholder, or an empty secret that is not passed on to a container. Not needed: a
            # variable or header that its author calls optional.
            needed = bool(mark) or (name not in passed and _has_to_be_filled(name, entry.get(str(keys[0]))))
            may_lack = OPTIONAL.search(mark) is not None or mark.startswith("default")
            needed = needed and not (keys[0] in ("env", "headers") and may_lack)
            told = mark in ("", name or mark) or (mark == text and keys[0] in ("env", "headers", "url"))
            why = "" if told else f"in place of {mark}"
            hides = secret(mark) and (mark == text or not _is_read_later(mark.strip("<>{}[]()$%#")))
            kind: ValueKind = "path" if _PLACEHOLDER_PATH.fullmatch(mark) and keys != ("command",) else "string"
            found.append(Variable(name or mark, keys, mark, why, secret=hides, required=needed, kind=kind))

    for place in ("env", "headers"):
        values = entry.get(place) or {}
        for name, value in values.items():
            add(str(name), (place, str(name)), value, partial(may_be_secret, str(name)))
        found += _described(place, values, {one.keys[1] for one in found if one.keys[0] == place})
    for at, word in enumerate(entry.get("args") or []):
        before = str(entry["args"][at - 1]) if at else ""
        option = re.match(r"(-{0,2}\w[\w.-]*)=", word) if isinstance(word, str) else None
        if option and word[0] != "-" and CONNECTION.search(word):
            option = None  # `Host=a;Password=b` has no name
        valued = before.startswith("-") and "=" not in before and not _FLAGS.fullmatch(before)
        valued = valued and not (program in SHELLS and before.endswith("c"))  # the word is code
        plain = (option[1] if option else before if valued else "").lstrip("-")
        plain = plain or ("package" if word == package else "")
        stands = isinstance(word, str) and word.isupper() and len(word) > 3 and before not in ("-e", "--env")
        stands = stands and _UNKNOWN.fullmatch(word) is not None  # `ORG_NAME` in place of a name
        plain = plain or (word if stands else "")
        add(plain, ("args", at), word, partial(_is_secret, plain, word), stands=stands)
    for key in ("command", "url", "cwd", "client_id"):
        add(key, (key,), entry.get(key), partial(_is_secret, "", str(entry.get(key) or "")))
    add("client_secret", ("client_secret",), entry.get("client_secret"), lambda mark: True)
    found = _shared(found)
    # several placeholders in one text are several values, with names of their own
    places = [(one.name, one.keys) for one in found if not one.shared]
    return tuple(
        replace(one, name=f"{one.name} {one.placeholder}") if places.count((one.name, one.keys)) > 1 else one
        for one in found
    )


def _inside_json(text: str) -> Iterator[tuple[str, str]]:
    """Yield each key and value of a text that is a JSON object, if the value only says what belongs there."""
    pairs: list[tuple[str, str]] = []

    def keep(found: list[tuple[str, Any]]) -> None:
        pairs.extend((key, value) for key, value in found if isinstance(value, str) and value)

    if text.startswith("{") and len(text) < LONGEST_LINE:
        with suppress(ValueError, RecursionError):
            json.loads(text, object_pairs_hook=keep)
            for key, value in pairs:
                if value in text and (_names_itself(key, value) or placeholder_in(value) == value):
                    yield key, value


# A sentence that says what belongs there: three words or more, one of them an article, a preposition or the like, which
# lists of values lack.
_DESCRIPTION = re.compile(
    r"(?=.*\b(?:an?|the|your|of|for|to|in|on|if|or|and|with|by|from|name)\b)"
    r"[A-Za-z][\w'/-]*(?:[ ,][\w'(/-][\w'/().,:;=-]*){2,}"
)
_SAID_DEFAULT = re.compile(r"[A-Za-z].*\((?i:default)s?(?: is|:|=| to)? ?[\"'`]?([^()\"'`]{1,60})[\"'`]?\)\.?")


def _described(place: str, values: Mapping[str, Any], asked: Collection[Any]) -> Iterator[Variable]:
    """Yield a Variable for each value that only describes what belongs there or, in parentheses, names its default.

    `asked`: the names of the values with placeholders. A description counts only if there are three of these or more,
    and if most values of the block have a placeholder or name a default.
    """
    texts = {str(name): value for name, value in values.items() if isinstance(value, str) and name not in asked}
    defaults = {name: found[1] for name, value in texts.items() if (found := _SAID_DEFAULT.fullmatch(value))}
    told = len(asked) + len(defaults)
    for name, value in texts.items():
        if name in defaults or (len(asked) > 2 and 2 * told > len(values) and _DESCRIPTION.fullmatch(value)):
            needed = name not in defaults and OPTIONAL.search(value) is None
            secret = may_be_secret(name, value)
            yield Variable(name, (place, name), value, value, secret, needed, default=defaults.get(name, ""))


def _has_to_be_filled(name: str, beside: Any) -> bool:
    """Return True if an empty variable is for the user to fill in.

    Its name must be that of a secret. No value beside it may be a placeholder: an author who writes placeholders means
    an empty value to be empty.
    """
    values = beside.values() if isinstance(beside, Mapping) else ()
    is_secret = re.search("(?i)(?:token|key|secret|pass(?:word|wd|phrase|code)?|pwd|credentials?|pat|auth)$", name)
    return is_secret is not None and not any(
        isinstance(one, str) and one and placeholder_in(one) is not None for one in values
    )


def _shared(found: Sequence[Variable]) -> list[Variable]:
    """Return the variables, in which a bracketed placeholder that occurs several times becomes one shared value.

    This applies to `<REPO>` in `<REPO>/venv/bin/python <REPO>/server.py`. A placeholder in a variable, in a header or
    after an option stays, since it has a name of its own.
    """
    own = [one for one in found if one.name in (one.placeholder, "command", "cwd") and one.keys[0] not in _PAIRS]
    marks = [one.placeholder for one in own if re.fullmatch(r"<[^<>]+>|\{+[^{}]+\}+", one.placeholder)]
    several = [one for one in own if marks.count(one.placeholder) > 1]
    return [replace(one, name=one.placeholder, description="", shared=True) if one in several else one for one in found]


# The password of a connection string: `Host=a;Password=b;`, `host=a password=b`
CONNECTION = re.compile(r"(?i)(?:^|[;=\s])(?:password|pwd)\s*=\s*([^;\s]+)(?=[;\s]|$)")
# A folder below a person's home, as an author has it in an example. Shared and the like are not persons.
_HOME = re.compile(
    r"(?i)(?:(?<=^)|(?<=[=,]))(?:/Users/|/home/|[A-Z]:[/\\]+Users[/\\]+)"
    r"(?!(?:Shared|Public|linuxbrew)(?:[/\\]|$))[^/\\:,<>${%]+(?:[/\\](?:(?! -)[^:,])*)?"
)
# Paths of Windows, which other systems lack; and paths of the others, which Windows lacks.
_DRIVE = re.compile(
    r"(?:(?<=^)|(?<=[=,]))(?:[A-Za-z]:|\$\{?(?:env:)?(?i:(?:LOCAL)?APPDATA|USERPROFILE|PROGRAM(?:FILES|DATA))\}?)[/\\]+[^:,]*"
)
_ROOT = re.compile(r"(?:(?<=^)|(?<=[=,]))/(?:usr|opt|var|srv|root|mnt|Applications|Volumes)/[^:,]*")
_MOUNTS = frozenset(("-v", "--volume", "--mount"))


def with_paths_of_others(
    source: Source, home: Path, *, windows: bool, exists: Callable[[str], bool]
) -> tuple[Variable, ...]:
    """Return the variables of a source, and one for each path that is not on this machine.

    Such a path is below another person's home, or belongs to another operating system. A missing path of this system,
    or below the user's own home, is its variable's default: the server may create it.
    """
    entry = source.entry
    words = [str(word) for word in entry.get("args") or []]
    program = program_of(str(entry.get("command") or ""))
    # the paths in its arguments are elsewhere
    is_container = program in CONTAINERS or (program in REACHING and program != "wsl")
    places: list[tuple[Keys, str]] = [
        (("args", at), word)
        for at, (before, word) in enumerate(zip(["", *words], words, strict=False))
        if not is_container or before in _MOUNTS or word.startswith("--mount=")
    ]
    if not is_container:
        places += [(("env", str(name)), str(text)) for name, text in (entry.get("env") or {}).items()]
        places += [((key,), str(entry[key])) for key in ("command", "cwd") if key in entry]
    taken = {one.keys for one in source.wants}
    found: list[Variable] = []
    for keys, text in places:
        path = _HOME.search(text) or (_ROOT if windows else _DRIVE).search(text)
        own = re.search(rf"(?<![^=,]){re.escape(str(home))}(?![\w.-])[^:,]*", text)
        own = own or (None if path else (_DRIVE if windows else _ROOT).search(text))
        if own is not None:
            path = None if exists(own[0]) else own
        if path is not None and keys not in taken:
            name = path[0] if keys[0] == "args" else str(keys[-1])
            kind: ValueKind = "path" if keys != ("command",) else "string"
            why, default = ("not on this machine", path[0]) if path is own else ("a path of another machine", "")
            if keys == ("command",) and program_of(path[0]) in RUNNERS:
                default = program_of(path[0])  # by its name, wherever it is on this machine
            found.append(Variable(name, keys, path[0], why, kind=kind, default=default))
    if not found:
        return source.wants
    return tuple(sorted((*source.wants, *found), key=lambda one: int(one.keys[1]) if one.keys[0] == "args" else -1))


# Programs that run the code of the current folder -> a file that this folder must contain.
_PROJECTS = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json"),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye"), "pyproject.toml"),
    "cargo": "Cargo.toml", "go": "go.mod", "pixi": "pixi.toml", "deno": "deno.json", "mix": "mix.exs",
    "bundle": "Gemfile", "rake": "Rakefile", "make": "Makefile", "mvn": "pom.xml",
}  # fmt: skip
_TASK_RUNNERS = frozenset(("pnpm", "yarn", "mix", "rake", "make", "mvn"))  # whatever follows is a task of the project
_ENVIRONMENTS = frozenset(("conda", "mamba", "micromamba"))  # they run a program in one of their environments
_PROJECT_VERBS = frozenset(("run", "run-script", "start", "exec", "task"))
_FOLDER_OPTIONS = frozenset(
    ("--prefix", "-C", "--dir", "--cwd", "--directory", "--project", "--manifest-path", "--root")
)
_WITHOUT_PROJECT = re.compile(r"--(?:with|script|no-project)(?:=|$)")
_INLINE = re.compile(r"-m|-[a-z]*c|-e|--eval|-Command")
# Programs whose first word is a file.
_SCRIPTED = frozenset(("node", "python", "python3", "py", "tsx", "ts-node", "php", "perl", "sh", "bash", "zsh", "pwsh"))
_CODE_FILE = re.compile(
    r"\.(?:[cm]?[jt]sx?|py(?::[a-z_]\w*)?|jar|rb|php|csx?|(?:cs|fs)proj|dll|go|sh|ps1|exs|pl)$", re.IGNORECASE
)
_LOADERS = frozenset(("fastmcp", "mcp"))  # `fastmcp run server.py:mcp`, with the name of an object in that file
_PATH_FIRST = re.compile(r"\.{1,2}(?:[/\\]|$)|[~/$<{\[]|[A-Za-z]:[/\\]")
_OWN_PACKAGE = re.compile(r"\.{1,2}(?:[/\\]|$)")  # `uvx --from . acme-mcp`, `npx ../acme-mcp`
_ELSEWHERE = re.compile(r"[\w+.-]+:[^\\]|[\w-]+\.[\w.-]+/|@")  # an address, a module of Go, a scoped package


COMPOSERS = frozenset(("docker-compose", "podman-compose"))
_SPELLED = {"docker-compose.yml": ("docker-compose.yaml", "compose.yaml", "compose.yml"), "deno.json": ("deno.jsonc",)}


def own_folder(entry: Entry) -> tuple[str | None, str]:
    """Return the folder that a command line names to run in, or None, and a file that must be in that folder.

    The file is the server's code (`dist/index.js`), its project's file (`package.json`) or a file of its container; ""
    if the code comes from elsewhere.
    """
    words = [str(entry.get("command") or ""), *map(str, entry.get("args") or [])]
    is_mark = words[0].startswith(("<", "{", "["))  # a placeholder for a program
    if re.search(r"[/\\]", words[0]) and is_relative(words[0]) and not is_mark:
        return None, words[0]
    program, rest = program_of(words[0]), words[1:]
    if program in CONTAINERS and (files := re.findall(r"\0--env-file[=\0]([^\0]+)", "\0".join(words))):
        return None, next(filter(is_relative, files), "")
    package = package_of(words)
    if _OWN_PACKAGE.match(package):
        return None, package if package.strip("./\\") else _PROJECTS["npm" if program == "npx" else "uv"]
    if package:
        program = re.sub(r"(?<=.)@.*", "", package)
        rest = words[words.index(package) + 1 :] if package in words else []
    if program in COMPOSERS or (program in CONTAINERS and rest[:1] == ["compose"]):
        file = next((value for option, value in pairwise(rest) if option in ("-f", "--file")), "docker-compose.yml")
        return None, file if is_relative(file) else ""
    runs_code = program in RUNNERS | _INTERPRETERS | _SCRIPTED | _LOADERS | _PROJECTS.keys()
    if program in CONTAINERS or not (is_mark or runs_code):
        return None, ""
    named = next((value for option, value in pairwise(rest) if option in _FOLDER_OPTIONS), None)
    named = named or next((word.partition("=")[2] for word in rest if word.partition("=")[0] in _FOLDER_OPTIONS), None)
    if inline := next(filter(_INLINE.fullmatch, rest), ""):  # then a module or code, and the words for it
        module = rest[rest.index(inline) + 1 :][:1]
        if program in _SCRIPTED or inline != "-m":
            return named, "src" if inline == "-m" and module[0].startswith("src.") else ""  # `src` is never installed
        rest = rest[: rest.index(inline)]
    plain = [word for word in rest if not word.startswith("-")]
    start = list(dropwhile(lambda word: word in _PROJECT_VERBS, plain))
    files = [word for at, word in enumerate(start) if _CODE_FILE.search(word) or (not at and _PATH_FIRST.match(word))]
    if files or program in _SCRIPTED:
        code = (files or start or [""])[0]
        code = re.sub(r"(?<=\.py):\w+$", "", code)
        code = code if is_relative(code) and not _ELSEWHERE.match(code) else ""
        return named, _PROJECTS.get(program, "") if code in (".", "./") else code
    if program in _TASK_RUNNERS:  # `--filter @acme/mcp start`
        return named, _PROJECTS[program]
    if any(map(_WITHOUT_PROJECT.match, rest)) or any(map(_ELSEWHERE.match, start[:1])):
        return named, ""
    is_project = bool(_PROJECT_VERBS & {*plain[:1]})
    return named, _PROJECTS.get(program, "") if is_project else ""


def with_folder(source: Source, exists: Callable[[str], bool]) -> Source:
    """Return a source that asks for the folder of its code, unless the current folder has the code.

    In both cases, a relative `cwd` and `scope: session` are removed. A source stays unchanged if it names an absolute
    folder, already asks for the folder or needs none.
    """
    entry = source.entry
    folder = str(entry.get("cwd") or "")
    is_asked = any(one.keys == ("cwd",) for one in source.wants)
    if "command" not in entry or (folder and not is_relative(folder)) or is_asked:
        return source
    named, code = own_folder(entry)
    code = code if named is None else named if is_relative(named) else ""
    below = folder if folder.strip("./") else ""  # a folder that only the author has
    if not (code or below) or any(one.placeholder and one.placeholder in (below or code) for one in source.wants):
        return source
    entry = {key: value for key, value in entry.items() if (key, value) != ("scope", "session") and key != "cwd"}
    if not below and any(map(exists, (code, *_SPELLED.get(code, ())))):
        return replace(source, entry=entry)
    why = f"the folder {below}" if below else f"the folder with {code}"
    return replace(source, entry=entry, wants=(*source.wants, Variable("cwd", ("cwd",), "", why, kind="directory")))


# Names of values that are not secret: users read and edit them in servers.yaml.
_NO_SECRET = re.compile(
    r"(?i)(?:ur[li]|endpoint|entrypoint)s?$|(?:^|[_-])(?:id|uid|uuid|guid|arn|ip|addr(?:ess)?)s?$"
    r"|(?:^|[_-])(?:host(?:name)?|port|db|database|name|region|zone|e?mail|user(?:name)?|(?:python|class)?path|dir(?:ectory)?|folder|file"
    r"|topic|env(?:ironment)?|ref|repo(?:sitory)?|branch|owner|model|domain|subdomain|profile|project|bucket|workspace|org(?:anization)?|team|level|type|engine"
    r"|mode|format|lang(?:uage)?|locale|version|timeout|limit|size|count|max|min|debug|ssl|tls|site|channel|guild|board"
    r"|tenant|instance|cluster|namespace|provider|group|role|root|enabled|disabled|slug|prefix|suffix|server|only"
    r"|account|base|client|app(?:lication)?|company|customer|table|collection|page|store)s?(?:[_-]?id)?$"
    r"|(?:^|[_-])(?:use|enable|disable|allow|is|has|show|skip|verify|include|exclude|max|min|default)[_-]"
)
# Addresses and IDs that give access by themselves, or contain a credential.
_GIVES_ACCESS = re.compile(
    r"(?i)(?:^|[_-])(?:session|sess|cookie|ticket|licen[cs]e|key|access|private|signed|shared?|invite|feed|ical"
    r"|(?:web)?hooks?|rpc|proxy|smtp|mqtt|amqp|broker|conn(?:ection)?|dsn|db|database|sql|postgres(?:ql)?|pg|mysql"
    r"|mariadb|mssql|mongo(?:db)?|redis|valkey|rabbitmq|clickhouse|neo4j)[_-]?(?:[gu]?u?id|ur[li])s?$"
)
_FLAGS = re.compile(r"-y|--yes|-it?|--rm|--stdio|--quiet|-q|--|--(?:allow|deny|no|enable|disable|skip)-[\w-]+")


# Names of options and placeholders for a database's connection string, which contains its password.
_CONNECTION_NAME = re.compile(
    r"(?i)(?<![a-z])(?:conn(?:ection)?[-_ ]?str(?:ing)?|dsn"
    r"|(?:database|db|postgres(?:ql)?|mysql|mongo(?:db)?)[-_]ur[li])(?![a-z])"
)


def _names_itself(name: str, text: str) -> bool:
    """Return True for a value that only says what belongs there: `API_KEY: TOKEN`, `ACCESS_TOKEN: cloud-token`."""
    if _FOLDER.fullmatch(text):
        return False  # a reference to a variable
    upper = name.upper().replace("-", "_")
    secret = _NOUN.search(upper) is not None
    if secret and (
        _NOUN.fullmatch(text)
        or text.endswith(("EXAMPLE", "EXAMPLEKEY"))  # Amazon's examples
        or _NOUN_ELSEWHERE.search(text)
        or ("://" not in text and _SAMPLE.search(text))
    ):
        return True
    if re.search("(?:TOKEN|KEY|SECRET)$", upper) and re.match(
        r"(?!bearer |basic |token |bot |op://)[^~/.{$-]\S* .", text, re.I
    ):
        return True  # `get it from acme.com`: a token or a key contains no blanks; a password may
    if secret and re.search(r"(?:TOKEN|KEY|SECRET|PASSWORD)$", upper) and re.search(r"[^\x00-\x7f]", text):
        return True  # a description in another language: the secrets of services are ASCII
    if _ADDRESS_NAME.search(upper) and _WORDS_ONLY.fullmatch(text):
        return True  # `Acme 365 url`: an address has no blanks, and a host without a dot has only ASCII letters
    if _PLACE_NAME.search(upper) and _NAMES_PLACE.fullmatch(text):
        return True
    if re.search("PASS|PWD|SECRET", upper) and re.fullmatch(_SECRET_WORD, text, re.IGNORECASE):
        return True
    if re.search("(?:TOKEN|KEY|SECRET)$", upper) and re.fullmatch("(?i)123(?:4(?:56?)?)?|key|token", text):
        return True
    if re.search("(?:^|_)ID$", upper) and re.fullmatch("12345?6?7?", text):
        return True
    if re.search("USER(?:NAME)?$", upper) and re.fullmatch(_SOMEBODY, text, re.IGNORECASE):
        return True
    words = _WORDS.fullmatch(text)
    hidden = re.search("(?:TOKEN|KEY|SECRET|PASS|PASSWORD|PASSWD|PWD)$", upper) is not None
    if words and (
        (hidden and _NOUN.fullmatch(words[1].upper())) or (upper.endswith("USER") and words[1].lower() == "id")
    ):
        return True  # `PASSWORD: access_key`
    if text.isupper() and _NOUNS.fullmatch(text) and text.endswith(upper.rpartition("_")[2]):
        return True  # `DB_NAME: DATABASENAME`
    same = re.sub("[- ]", "_", text.upper())
    if "_" in same and _UNKNOWN.fullmatch(text) and upper.rpartition("_")[2] in same.split("_"):
        return True  # `GOOGLE_PROJECT: PROJECT_NAME`
    return (words is not None and upper.endswith(words[1].upper())) or (
        len(text) > (1 if text.isupper() else 3)
        and (upper == same or (upper.endswith(same) and _UNKNOWN.fullmatch(text) is not None))
    )


_ADDRESS_NAME = re.compile("(?:UR[LI]|ENDPOINT|HOSTNAME|EMAIL|(?:^|_)(?:HOST|PORT))$")
_WORDS_ONLY = re.compile(r"(?=.*[^\W\d_])(?=.*(?:[ ]|[^\x00-\x7f]))[^/\\:@.,;=${}<>|\[\]*-]{2,80}")
_PLACE_NAME = re.compile("(?:^|_)(?:PATH|DIR(?:ECTORY)?|FOLDER|FILE)$")
_NAMES_PLACE = re.compile(r"(?i)[a-z][\w ]{0,60} (?:path|dir(?:ectory)?|folder|location|file)")
_PLAIN_ADDRESS = re.compile(r"https?://[^@\s?]*|[\w-]+(?:\.[\w-]+)+\.(?:com|net|org|io|dev|app|cloud|local)")


def _is_read_later(name: str) -> bool:
    return _NO_SECRET.search(name) is not None and _GIVES_ACCESS.search(name) is None


def may_be_secret(name: str, mark: str) -> bool:
    """Return False if a value by this name is no secret, or if `mark` exemplifies a path or a plain address; else True.

    A plain address contains no credentials.
    """
    if _is_read_later(name) and redacted(f"{name}=plain-value") == f"{name}=plain-value":
        return False
    return not (_PLACEHOLDER_PATH.fullmatch(mark) or _PLAIN_ADDRESS.fullmatch(mark))


def _is_secret(option: str, word: str, mark: str) -> bool:
    """Return True if a value in place of `mark` among the arguments is a secret, by its option or its surroundings."""
    samples = (f"{option or mark}=plain-value", word.replace(mark, "plain-value"))
    if re.fullmatch("pass|passwd|pwd", option, re.IGNORECASE):
        return may_be_secret("", mark)
    # otherwise the name in `mark` counts: `--url redis://:<password>@host`
    is_whole = mark in (word, word.partition("=")[2])
    named = (
        None
        if option and is_whole and _is_read_later(option)
        else re.search(r"(?i)(?:token|secret|password|(?<![a-z])key)(?![a-z])|://[^/@\s]*:[^/@\s]+@", mark)
        or _CONNECTION_NAME.search(f"{option} {mark}")
    )
    return (named is not None and may_be_secret("", mark)) or any(redacted(sample) != sample for sample in samples)


def _input(mark: str, definition: Mapping[str, Any], keys: Keys) -> Variable:
    options = definition.get("options")
    return Variable(
        str(definition["id"]),
        keys,
        mark,
        str(definition.get("description") or ""),
        secret=definition.get("password", not _is_read_later(str(definition["id"]))) is not False,
        choices=tuple(map(str, options)) if isinstance(options, list) else (),
        shared=True,
    )


def placeholders_in(text: str) -> list[str]:
    """Return the parts of a text that are placeholders, in their order in the text, each once."""
    found: list[str] = []
    whole = text
    while (mark := placeholder_in(text)) is not None and mark not in found:
        if found and (host := re.search(r"://([^/?#\s]+)", mark)):
            mark = host[1]  # only the host: the rest of this address may hold other placeholders
        found.append(mark)
        if mark in ("", text) or f"{mark}:/" in text:
            break  # `HOST:CONTAINER`: what follows is a path in a container
        text = _bounded(mark).sub("plain", text)
    return sorted(found, key=whole.find)


def placeholder_in(text: str) -> str | None:
    """Return a part of a text that is a placeholder. A blank text is one, too; None if the text is a value."""
    if not text.strip():
        return text
    if _PLACEHOLDER.fullmatch(text):
        return text
    if text.startswith("op://"):  # a reference of 1Password
        return text if _EXAMPLE.search(text) or "<" in text else None
    if _PLACEHOLDER_PATH.fullmatch(text):
        # Cut off a path in a container (`HOST:CONTAINER`) and a Nix package (`FOLDER#PACKAGE`): they stay as they are.
        return re.split(r"(?<=..)(?<![;,][A-Za-z]):(?=/)|#", text)[0]
    if given := CONNECTION.search(text):
        word = given[1]
        if re.fullmatch(_SECRET_WORD, word, re.IGNORECASE) or _PLACEHOLDER.fullmatch(word) or _EXAMPLE.search(word):
            return word
    if (inside := _INSIDE.search(text)) is not None:
        return inside[0]
    for (opening, closing), one_sided in _DAMAGED.items():
        if text.count(opening) != text.count(closing) and (damaged := one_sided.search(text)) is not None:
            return damaged[0]
    for part in re.split(r"(?<=[=:/?&])|\s+", text):
        part = part.strip("\"'/?&:")
        if re.fullmatch(r"<[^<>]{1,80}>|\{\{[^{}]{1,80}\}\}", part):
            return part
    if (named := _YOUR.search(text)) is not None:
        return named[0]
    head, _, rest = text.partition(" ")
    if (
        rest
        and head.lower() in ("bearer", "basic", "token")
        and (
            _PLACEHOLDER.fullmatch(rest)
            or _UNKNOWN.fullmatch(rest)
            or re.fullmatch(r"[a-z]+\d{0,2}(?:[_-][a-z]+)+", rest)
        )
    ):
        return rest
    for name, value in re.findall(r"[?&]([\w.-]+)=([^&#]+)", text):
        same = re.fullmatch("[A-Z]+(?:_[A-Z]+)+", value) and name.upper() in value.split("_")  # `?room=ROOM_CODE`
        if same or _PLACEHOLDER.fullmatch(value) or _PLACEHOLDER_PATH.fullmatch(value) or _NOUN.fullmatch(value):
            return str(value)
    path = re.split(r"[\s?#]", text.partition("://")[2], maxsplit=1)[0]
    if found := re.search(r"(?<![A-Z_])VERSION(?![A-Z_])", path):
        return found[0]  # `https://a.test/vVERSION/a-VERSION.tgz`
    for part in re.findall(r"(?<=/)[A-Z][A-Z0-9_]+(?=/|$)", path):
        if "_" in part or _UNKNOWN.fullmatch(part):
            return str(part)  # `https://a.test/servers/ID_OF_SERVER`, `https://a.test/SUBDOMAIN`
    head, mark, _ = text.partition("/")
    if mark and head.isupper() and _UNKNOWN.fullmatch(head):
        return head  # `INSTANCE_URL/mcp`
    name, mark, value = text.partition("=")
    if (
        mark
        and re.fullmatch(r"-{0,2}\w[\w-]*", name)
        and (_PLACEHOLDER.fullmatch(value) or _PLACEHOLDER_PATH.fullmatch(value))
    ):
        return value if _PLACEHOLDER.fullmatch(value) else re.split(r"(?<=..):(?=/)", value)[0]
    if re.search(r"=(?:\.{3}|\u2026)(?=[;,\s]|$)", text):  # `SID=...; HSID=...`
        return text
    if "://" in text and text.endswith(("/...", "/\u2026")):
        return text
    if "://" in text and (named := _ROUND.search(text)):
        return named[0]
    return _example_in(text)


def _example_in(text: str) -> str | None:
    """Return the word of a text that is the author's example, the whole address if its host is one, or None."""
    if _EXAMPLE_ELSEWHERE.search(text) and not re.search(r"[<>{}\[\]]", text):
        return text
    if " " not in text and "://" not in text and _IN_A_ROW.search(text) and redacted(text) == text:
        return text.partition("=")[2] or text  # not a text in the form of a secret, which may be real
    for word in re.split(r"\s+|(?<==)|;(?=[A-Za-z][\w ]*=)", text):
        scheme, mark, rest = word.partition("://")
        if mark and rest.lower().startswith("my-"):
            return word.strip("\"'")
        if not _EXAMPLE.search(word):
            continue
        if mark and scheme and not _EXAMPLE.search(f"{mark}{rest.partition('/')[0]}"):
            return next((part for part in re.split(r"[/?&=#]", rest) if _EXAMPLE.search(part)), word)
        if mark:  # the whole address: the values of its query may be the reader's choice, too
            return re.match(r"[^\s;]*", text[text.index(word) :])[0].strip("\"'")  # type: ignore[index]
        if _SPACED_PATH.fullmatch(text) and re.search(r"[^/\\][/\\]", word):
            return text
        value = re.split(r"^[A-Za-z][\w-]+:(?![/\\])", word)[-1]  # of `Name:value`
        return re.split(r"(?<=..):(?=/)", value.strip("\"'"))[0]
    found = _HOST.search(text)
    host = (found[1] or found[2]) if found else ""
    word_in_host = _CAPITALS.search(host.rpartition(".")[0])  # `https://PROJECT_REF.acme.com`
    return word_in_host[0] if word_in_host and not host.isupper() else None


def name_for(entry: Mapping[str, Any]) -> str:
    """Return a name for a server that has none, from its package, program or address."""
    url = entry.get("url")
    if isinstance(url, str):
        with suppress(ValueError):  # an invalid address
            return name_of_url(url)
        return "server"
    words = [str(entry.get("command") or ""), *(str(arg) for arg in entry.get("args") or [])]
    package = package_of(words)
    bare = re.sub(r"(?<=.)@.*", "", package)
    if bare in BRIDGES and (address := next((word for word in words if re.match(r"https?://\w", word)), "")):
        return name_of_url(address)
    program = PurePosixPath(words[0].replace("\\", "/")).stem
    if "--" in words and program.lower() in _WRAPPERS and (inner := words[words.index("--") + 1 :]):
        return name_for({"command": inner[0], "args": inner[1:]})
    if program.lower() in _ENVIRONMENTS and (inner := _in_environment(words)):
        return name_for({"command": inner[0], "args": inner[1:]})
    if bare == "@smithery/cli" and "run" in words[:-1]:
        package = words[words.index("run") + 1]
    elif package in words and _OWN_PACKAGE.match(package):  # `--from . acme-mcp`
        package = next(iter(words[words.index(package) + 1 :]), package)
    elif bare in _INTERPRETERS or (not package and program.lower() in _INTERPRETERS):
        package = next(filter(None, map(_own_part, words[1:])), "")
    named = _NAMED_WITHIN.match(" ".join([program, *words[1:]]))
    return name_of_package(package or script_of(words) or (named and named[named.lastindex or 0]) or program)


# The program of a project, and what a build tool starts: `poetry run weather-mcp`, `cargo run --bin weather-mcp`.
_NAMED_WITHIN = re.compile(
    r"(?:poetry|pdm|hatch|rye|pixi|pipenv|bundle|dotnet tool|(?:docker|podman)[ -]compose) (?:run|exec)"
    r" (?:-\S+ )*([\w.-]+)"
    r"|cargo run (?:.* )?(?:--bin|-p|--package)[ =]([\w-]+)|jbang (?:-\S+ )*[\w.-]+:([\w.-]+):\S+"
    r"|mix (\w+)\.mcp\b|php artisan mcp:start ([\w-]+)"
    r"|nix run (?:-\S+ )*(?:[\w+.:/-]+#([\w.-]+)|git(?:hub|lab):[\w.-]+/([\w.-]+))"
)


def _in_environment(words: Sequence[str]) -> list[str]:
    """Return the command that `conda run -n NAME COMMAND` runs; [] for another subcommand."""
    rest = list(words[2:]) if list(words[1:2]) == ["run"] else []
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in ("-n", "--name", "-p", "--prefix", "--cwd") else 1 :]
    return rest


BRIDGES = frozenset(("mcp-remote", "supergateway", "mcp-proxy"))  # they start no server but connect to an address
_WRAPPERS = frozenset(
    ("op", "dotenvx", "infisical", "doppler", "mise", "volta")
)  # they set variables, then run another program
_INTERPRETERS = frozenset(
    (
        "node",
        "deno",
        "bun",
        "java",
        "dotnet",
        "dnx",
        "go",
        "cargo",
        "ruby",
        "php",
        "tsx",
        "ts-node",
        "python",
        "python3",
    )
)
# Parts of a path that say nothing about the program.
_PLAIN_PARTS = frozenset((
    "index", "server", "main", "__main__", "app", "cli", "mcp", "stdio", "run", "start", "bin", "dist", "build", "src",
    "out", "lib", "target", "release", "debug", "scripts", "path", "to", "absolute", "your", "full",
))  # fmt: skip
_PROGRAM_FILE = re.compile(r"\.(?:[cm]?[jt]sx?|py|jar|rb|php|(?:cs|fs)proj|dll|go|toml)$", re.IGNORECASE)


def _own_part(word: str) -> str:
    """Return the part of a program's path that names it (`weather-mcp` of /srv/weather-mcp/dist/index.js), or ""."""
    if word.startswith("-") or not re.search(r"[/\\.]|^(?:jsr|npm):", word) or "=" in word:
        return ""
    if re.match(r"(?:jsr|npm):|[\w.-]+\.\w+/.*/", word):  # a package, or a module of Go
        return re.sub(r"^(?:jsr|npm):/?((?:@[\w.-]+/)?[^/]+).*", r"\1", word)
    parts = [re.sub(r"-v?\d+\.\d[\w.-]*$", "", _PROGRAM_FILE.sub("", part)) for part in re.split(r"[/\\]", word)]
    own = [
        part for part in parts if part.lower() not in _PLAIN_PARTS and re.match(r"(?!net\d)\w*[A-Za-z][\w.-]+$", part)
    ]
    return own[-1] if own else ""


def script_of(words: Sequence[str]) -> str:
    """Return the name of the script or module that `uv run` or `python -m` runs, or of a program with a path.

    "" for any other program.
    """
    program, rest = PurePosixPath(words[0]).name, list(words[1:])
    if program == "uv" and "run" in rest:
        rest = rest[rest.index("run") + 1 :]
        while rest and rest[0].startswith("-") and rest[0] != "-m":
            rest = rest[2 if rest[0] in _WITH_VALUE["uv"] else 1 :]
        program = rest.pop(0) if rest and rest[0] != "-m" else "python"
    if not re.fullmatch(r"python[\d.]*|py", program):
        return PurePosixPath(program).stem if words[0] != program else ""
    return rest[1].partition(".")[0] if rest[:1] == ["-m"] and len(rest) > 1 else ""


def name_of_package(package: str) -> str:
    """Return a server's name from its package: `filesystem` for `@modelcontextprotocol/server-filesystem@1.2.3`.

    The name has at most LONGEST_NAME characters. It is `server` if nothing else is left.
    """
    bare = re.sub(r"(?<=.)(?:@|#|[=<>!~]=?|\[).*$", "", package)
    bare = re.sub(r"\.(?:git|tgz|tar\.gz)$", "", bare)
    scope, _, last = bare.rpartition("/")
    last = last.partition(":")[0]
    short = last
    while (cut := _GENERIC.sub("", short)) not in ("", short):
        short = cut
    if short.lower() in ("mcp", "server", "mcp-server", ""):
        short = scope.removesuffix("/cmd").rpartition("/")[2].lstrip("@") or last
    return re.sub(r"[^A-Za-z0-9._-]+", "-", short).strip("-._")[:LONGEST_NAME] or "server"


_WITH_VALUE = {
    "uv": {"--directory", "--project", "--with", "--with-editable", "--with-requirements", "--from", "--python", "-p",
           "--extra", "--group", "--env-file", "--index", "--index-url"},
    "npx": {"-p", "--package", "-c", "--call"},
    "dnx": {"--version", "--source", "--add-source", "--configfile", "--framework", "-v", "--verbosity"},
    "uvx": {"--from", "--with", "--with-editable", "--with-requirements", "--python", "-p", "--python-preference",
            "--index", "--default-index", "--index-url", "-i", "--extra-index-url", "--find-links", "-f",
            "--index-strategy", "--keyring-provider", "--prerelease", "--resolution", "--exclude-newer",
            "--constraints", "-c", "--overrides", "--env-file", "--link-mode", "--cache-dir", "--directory",
            "--project", "--config-file", "--refresh-package", "--upgrade-package", "-P", "--no-binary-package"},
    "docker": {"-e", "--env", "-v", "--volume", "--mount", "--name", "-p", "--publish", "--network", "--add-host",
               "--env-file", "-w", "--workdir", "-u", "--user", "--pull", "--platform", "--entrypoint", "--memory",
                "--cpus", "-l", "--label", "--gpus", "--hostname", "-h", "--security-opt", "--cap-add", "--cap-drop",
               "--tmpfs", "--shm-size", "--restart"},
}  # fmt: skip


def container_options(words: Sequence[str]) -> list[str] | None:
    """Return the words of `docker run` or `docker exec` before the image or container; None for another command."""
    if program_of(words[0]) not in CONTAINERS or list(words[1:2]) not in (["run"], ["exec"]):
        return None
    at = 2
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _WITH_VALUE["docker"] else 1
    return list(words[:at])


# Programs that start servers, from a package or a file.
RUNNERS = frozenset((
    "npx", "bunx", "pnpx", "pnpm", "yarn", "bun", "npm", "uvx", "uv", "pipx", "docker", "podman", "node", "deno",
    "python", "python3", "py", "java", "dotnet", "dnx", "go", "cargo", "ruby", "php", "mcp-remote", "supergateway",
    "poetry", "pdm", "hatch", "rye", "pixi", "nix", "mise", "dart", "swift", "jbang", "mix", "perl", "rscript", "julia",
    "op", "dotenvx", "infisical", "doppler", "volta", "conda", "mamba", "micromamba", "bundle",
))  # fmt: skip


_SWITCH = re.compile(r"--[\w-]+=.*|--(?:silent|yes|quiet|bun)|-[sy]")  # an option of a package manager before its verb


def program_of(word: str) -> str:
    """Return a program's name in lower case, without folder, `.exe` and `.cmd`: `npx` for `C:\\node\\npx.cmd`."""
    return word.replace("\\", "/").rstrip("/").rpartition("/")[2].lower().removesuffix(".exe").removesuffix(".cmd")


def package_of(words: list[str]) -> str:
    """Return the package or image that a command line runs, or "" if it cannot be determined."""
    if not words:
        return ""
    program = program_of(words[0])
    rest = words[1:]
    if program in ("pnpm", "yarn", "bun", "npm"):
        own = list(dropwhile(_SWITCH.fullmatch, rest))
        if own[:1] and own[0] in ("dlx", "x", "exec"):
            program, rest = "npx", own[1:]
    if program in ("bunx", "pnpx"):
        program = "npx"
    if (program == "pipx" and rest[:1] == ["run"]) or (program == "uv" and rest[:2] == ["tool", "run"]):
        program, rest = "uvx", rest[1 if program == "pipx" else 2 :]
    if program == "podman":
        program = "docker"
    if program == "docker":
        rest = rest[1:] if rest[:1] == ["run"] else []
    options = _WITH_VALUE.get(program)
    if options is None or program == "uv":
        return ""
    chosen = ""
    at = 0
    while at < len(rest):
        word = rest[at]
        named = {"npx": ("--package", "-p"), "uvx": ("--from",)}.get(program, ())
        if word in named and at + 1 < len(rest):
            chosen = chosen or rest[at + 1]
        if word.startswith("--package=") or word.startswith("--from="):
            chosen = word.partition("=")[2]
        if word == "--":
            at += 1
            continue
        if word.startswith("-"):
            at += 2 if word in options else 1
            continue
        return chosen or word
    return chosen
