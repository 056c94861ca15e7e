"""Recognize placeholders, which authors write where the reader has to put a value, and values that may be secret."""

from __future__ import annotations

import re

from trayapp.model.redact import redacted

# Texts that are placeholders as a whole.
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
    r"|\$\{[a-z]\w*(?:\.[\w-]+)+\}|\$\{[A-Za-z]\w*-[A-Z]\w*\}"  # expressions of Nix and Terraform, not variables
    r"|(?<=@)v?(?:[xX]\.[xX](?:\.[xX])?|X\.Y\.Z)(?![\w.])|(?<=:)(?:\*{3,}|\.{3})(?=@)"
    r"|(?<=[\w\]]:)PORT(?=[/?#]|$)|%[A-Za-z_]\w{2,}%(?:\\[^:,;\"]*)?|%(?i:cd)%(?=[:/\\]|$)|(?<=://)[A-Z][A-Z_-]*[A-Z](?=[:/]|$)"
)
# A placeholder in parentheses, as part of an address.
_ROUND = re.compile(r"(?<=[/@:.=?&])\([^\W\d_][\w.-]{2,40}(?:[ ][\w.-]{1,40}){0,5}\)(?=[/.:@?&#]|$)")
# The host of an address, with or without a scheme, and words in capitals within the host. Such a word is a placeholder:
# no host has `_` in its name (RFC 1123), and hosts are written in lower case.
_HOST = re.compile(
    r"://(?:[^/\s@]*@)?([\w.-]+)|^([\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|dev|app|cloud|ai|co))(?=[:/]|$)"
)
_CAPITALS = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z][A-Z0-9]{0,30}(?:[_-][A-Z0-9]{1,30}){1,8}|(?!API|MCP|WWW)[A-Z]{3,})(?![A-Za-z0-9])"
)
# A placeholder with one bracket missing: `<API_KEY`, `api_key}`, `{{API_KEY}`. `${` belongs to a reference.
_DAMAGED_NAME = r"(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|(?:your|my)[-_ ][\w -]{2,40}|[a-z]{2,}(?:[-_][a-z]{2,}){1,4})"
_DAMAGED_WORD = r"[A-Za-z][\w-]{1,40}(?=[/?&#]|$)"  # counts only after an opening bracket
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
# Words that end with the kind of value to enter, such as `cloud-token`, `a-long-random-secret-key`, `org_url`.
_WORDS = re.compile(r"(?i)(?:[a-z]+[-_ ]){1,6}(token|key|secret|password|passwd|url|id|email|user(?:name)?)")
# Words that only describe the value to enter. Other words, such as `admin`, may be real values.
GENERIC_NAME = re.compile(
    r"(?i)(?:[a-z]+[-_ ])*(?:token|key|secret|pass(?:word|wd)?|ur[li]|id|e?mail|user(?:name)?|host(?:name)?|name|domain"
    r"|endpoint|address|project|account|region|database|path|port|org(?:anization)?|workspace|team|tenant|subdomain|slug|uuid"
    r"|instance|company|customer|ip)"
)
_NOUNS = re.compile("[A-Z]{2,12}(?:NAME|TOKEN|KEY|SECRET|PASSWORD|URL|HOST|ID)")  # two nouns in one word
_NOUN_ELSEWHERE = "(?:令牌|密码|キー|トークン|パスワード|토큰|비밀번호)"
# A word in a secret that shows that the secret is an example.
_SAMPLE = r"(?i:(?<![a-z])(?:example|sample|dummy|fake|placeholder)(?![a-z]))"
# Example user names and passwords, as authors write them into addresses of databases.
_SOMEBODY = r"(?:[a-z]{1,10}[_-]?)?user(?:name)?\d?"
_SECRET_WORD = r"(?:[a-z]{1,10}[_-]?)?(?:pass(?:word|wd)?|pwd|secret)\d?"
# A database on the user's own machine or network may really have such a password.
_OWN_HOST = (
    r"(?:localhost|127\.|0\.0\.0\.0|\[|host\.docker\.internal|(?:db|postgres|mysql|redis|mongo(?:db)?|neo4j)[:/])"
)
FOLDER_VARIABLE = re.compile(r"\$\{(\w+)\}")  # such as `${PWD}`, the folder that an editor or a shell has open
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
# "Your" in the languages of _FOREIGN_NOUN, at the start of a word: `seu-workspace.acme.com`, `VOTRE_CLE`. Words that
# are also parts of names, such as `tu` or `vos`, count only before a noun.
_YOUR_ELSEWHERE = (
    r"(?<![a-z0-9])(?:seu|sua|votre)[-_](?=[a-z]{2})"
    rf"|(?<![a-z0-9])(?:vos|deine?|ihre?|tu[ao])[-_](?=(?:[a-z]+[-_])?(?:{_FOREIGN_NOUN}|{_NOUN_ANYWHERE}))"
    r"|(?<![a-z0-9])(?:seu|sua|tu|votre|deine?|tuo)(?:dom[ií]nio|domaine|domain|servidor|serveur|server|projekt|pro(?:j|y)e[ct]?to"
    r"|empresa|loja|tienda|inst[aâ]ncia|instanz|site|sitio|sito)(?![a-z])"
    rf"|(?<![\w.-])tu[-_](?={_FOREIGN_NOUN}|{_NOUN_ANYWHERE})|(?<![\w.-])(?:su|ton|ta|tes)[-_](?={_FOREIGN_NOUN})"
)
# An author's example anywhere in a text: `yourcompany.com`, `oh.YOUR_TOKEN`, `api-xxxxxxxx-xxxx`. YOURLS, a program, is
# not one.
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
# Words of placeholders in other languages ("your", "path", "key", "here", "enter"), and e-mail addresses at the domains
# that RFC 2606 reserves.
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
# Hosts that no server can have (RFC 2606), and similar hosts in authors' examples. The similar ones may be real, so
# only the first pattern applies to a server's `url`.
RESERVED_HOST = re.compile(r"(?i)https?://(?:[\w-]+\.)*(?:example\.(?:com|net|org)|example|invalid)(?:[:/?#].*)?")
EXAMPLE_ADDRESS = re.compile(r"(?i)https?://(?=[\w.-]*(?<![a-z0-9])example(?![a-z0-9]))[\w.-]+(?::\d+)?(?:/[^\s\"']*)?")
PLACEHOLDER_PATH = re.compile(
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


def as_whole_word(mark: str) -> re.Pattern[str]:
    """Return a pattern that matches a placeholder as a whole word, but not as a name before `=` (`token=token`)."""
    before, after = (r"(?<!\w)" if mark[0].isalnum() else ""), (r"(?![\w=])" if mark[-1].isalnum() else "")
    return re.compile(f"{before}{re.escape(mark)}{after}")


# The password of a connection string: `Host=a;Password=b;`, `host=a password=b`
CONNECTION = re.compile(r"(?i)(?:^|[;=\s])(?:password|pwd)\s*=\s*([^;\s]+)(?=[;\s]|$)")


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


# Names of options and placeholders for a database's connection string, which contains its password.
_CONNECTION_NAME = re.compile(
    r"(?i)(?<![a-z])(?:conn(?:ection)?[-_ ]?str(?:ing)?|dsn"
    r"|(?:database|db|postgres(?:ql)?|mysql|mongo(?:db)?)[-_]ur[li])(?![a-z])"
)


def names_itself(name: str, text: str) -> bool:
    """Return True for a text that only describes the value to enter: `API_KEY: TOKEN`, `ACCESS_TOKEN: cloud-token`."""
    if FOLDER_VARIABLE.fullmatch(text):
        return False  # a reference to a variable
    upper = name.upper().replace("-", "_")
    if any(named.search(upper) and only_says.fullmatch(text) for named, only_says in _SAYS):
        return True
    last = words[1].upper() if (words := _WORDS.fullmatch(text)) else ""
    hidden = re.search("(?:TOKEN|KEY|SECRET|PASS|PASSWORD|PASSWD|PWD)$", upper) is not None
    if (hidden and _NOUN.fullmatch(last)) or (upper.endswith("USER") and last == "ID"):
        return True  # `PASSWORD: access_key`
    if text.isupper() and _NOUNS.fullmatch(text) and text.endswith(upper.rpartition("_")[2]):
        return True  # `DB_NAME: DATABASENAME`
    same = re.sub("[- ]", "_", text.upper())
    if "_" in same and GENERIC_NAME.fullmatch(text) and upper.rpartition("_")[2] in same.split("_"):
        return True  # `GOOGLE_PROJECT: PROJECT_NAME`
    if last and upper.endswith(last):
        return True
    ends = upper == same or (upper.endswith(same) and GENERIC_NAME.fullmatch(text) is not None)
    return ends and len(text) > (1 if text.isupper() else 3)


# Names of values, each with the texts that are only descriptions under such a name.
_SAYS = tuple((re.compile(name), re.compile(f"(?s:{text})")) for name, text in (
    ("TOKEN|KEY|SECRET|PASSWORD", f"{_NOUN.pattern}|.*EXAMPLE(?:KEY)?|.*{_NOUN_ELSEWHERE}|(?!.*://).*{_SAMPLE}.*"),
    # `get it from acme.com`: a token or a key contains no spaces; a password may
    ("(?:TOKEN|KEY|SECRET)$", r"(?i:(?!bearer |basic |token |bot |op://)[^~/.{$-]\S* .+)"),
    # a description in another language: the secrets of services are ASCII
    ("(?:TOKEN|KEY|SECRET|PASSWORD)$", r".*[^\x00-\x7f].*"),
    # `Acme 365 url`: an address has no spaces, and a host without a dot has only ASCII letters
    ("(?:UR[LI]|ENDPOINT|HOSTNAME|EMAIL|(?:^|_)(?:HOST|PORT))$",
     r"(?=.*[^\W\d_])(?=.*(?:[ ]|[^\x00-\x7f]))[^/\\:@.,;=${}<>|\[\]*-]{2,80}"),
    ("(?:^|_)(?:PATH|DIR(?:ECTORY)?|FOLDER|FILE)$",
     r"(?i:[a-z][\w ]{0,60} (?:path|dir(?:ectory)?|folder|location|file))"),
    ("PASS|PWD|SECRET", f"(?i:{_SECRET_WORD})"),
    ("(?:TOKEN|KEY|SECRET)$", "(?i:123(?:4(?:56?)?)?|key|token)"),
    ("(?:^|_)ID$", "12345?6?7?"),
    ("USER(?:NAME)?$", f"(?i:{_SOMEBODY})"),
))  # fmt: skip
_PLAIN_ADDRESS = re.compile(r"https?://[^@\s?]*|[\w-]+(?:\.[\w-]+)+\.(?:com|net|org|io|dev|app|cloud|local)")


def names_plain_value(name: str) -> bool:
    """Return True if a name, such as `ACME_URL` or `log-level`, shows that its value is not secret."""
    return _NO_SECRET.search(name) is not None and _GIVES_ACCESS.search(name) is None


def may_be_secret(name: str, mark: str) -> bool:
    """Return False if `name` shows that its value is not secret, or if `mark` is an example path or plain address."""
    if names_plain_value(name) and redacted(f"{name}=plain-value") == f"{name}=plain-value":
        return False
    return not (PLACEHOLDER_PATH.fullmatch(mark) or _PLAIN_ADDRESS.fullmatch(mark))


def is_secret(option: str, word: str, mark: str) -> bool:
    """Return True if the value for `mark` in an argument is a secret, judging by its option and the text around it."""
    samples = (f"{option or mark}=plain-value", word.replace(mark, "plain-value"))
    if re.fullmatch("pass|passwd|pwd", option, re.IGNORECASE):
        return may_be_secret("", mark)
    # the option's name counts only if `mark` is the whole value, unlike in `--url redis://:<password>@host`
    is_plain = option and mark in (word, word.partition("=")[2]) and names_plain_value(option)
    named = re.search(r"(?i)(?:token|secret|password|(?<![a-z])key)(?![a-z])|://[^/@\s]*:[^/@\s]+@", mark)
    named = named or _CONNECTION_NAME.search(f"{option} {mark}")
    hides = named is not None and not is_plain and may_be_secret("", mark)
    return hides or any(redacted(sample) != sample for sample in samples)


def placeholders_in(text: str) -> list[str]:
    """Return the distinct placeholders in a text, in order."""
    found: list[str] = []
    whole = text
    while (mark := placeholder_in(text)) is not None and mark not in found:
        if found and (host := re.search(r"://([^/?#\s]+)", mark)):
            mark = host[1]  # only the host: the rest of this address may hold other placeholders
        found.append(mark)
        if mark in ("", text) or f"{mark}:/" in text:  # `HOST:CONTAINER`: what follows is a path in a container
            break
        text = as_whole_word(mark).sub("plain", text)
    return sorted(found, key=whole.find)


def placeholder_in(text: str) -> str | None:
    """Return a part of a text that is a placeholder, or None if there is none. A blank text is a placeholder."""
    if not text.strip():
        return text
    if _PLACEHOLDER.fullmatch(text):
        return text
    if text.startswith("op://"):  # a 1Password secret reference
        return text if _EXAMPLE.search(text) or "<" in text else None
    if PLACEHOLDER_PATH.fullmatch(text):
        # Cut off a path in a container (`HOST:CONTAINER`) and a Nix package (`FOLDER#PACKAGE`), which are not replaced.
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
    words = (_PLACEHOLDER, GENERIC_NAME, re.compile(r"[a-z]+\d{0,2}(?:[_-][a-z]+)+"))
    if rest and head.lower() in ("bearer", "basic", "token") and any(word.fullmatch(rest) for word in words):
        return rest
    for name, value in re.findall(r"[?&]([\w.-]+)=([^&#]+)", text):
        same = re.fullmatch("[A-Z]+(?:_[A-Z]+)+", value) and name.upper() in value.split("_")  # `?room=ROOM_CODE`
        if same or _PLACEHOLDER.fullmatch(value) or PLACEHOLDER_PATH.fullmatch(value) or _NOUN.fullmatch(value):
            return str(value)
    path = re.split(r"[\s?#]", text.partition("://")[2], maxsplit=1)[0]
    if found := re.search(r"(?<![A-Z_])VERSION(?![A-Z_])", path):
        return found[0]  # `https://a.test/vVERSION/a-VERSION.tgz`
    for part in re.findall(r"(?<=/)[A-Z][A-Z0-9_]+(?=/|$)", path):
        if "_" in part or GENERIC_NAME.fullmatch(part):
            return str(part)  # `https://a.test/servers/ID_OF_SERVER`, `https://a.test/SUBDOMAIN`
    head, mark, _ = text.partition("/")
    if mark and head.isupper() and GENERIC_NAME.fullmatch(head):
        return head  # `INSTANCE_URL/mcp`
    name, mark, value = text.partition("=")
    if mark and re.fullmatch(r"-{0,2}\w[\w-]*", name):
        if _PLACEHOLDER.fullmatch(value):
            return value
        if PLACEHOLDER_PATH.fullmatch(value):
            return re.split(r"(?<=..):(?=/)", value)[0]
    if re.search(r"=(?:\.{3}|\u2026)(?=[;,\s]|$)", text):  # `SID=...; HSID=...`
        return text
    if "://" in text and text.endswith(("/...", "/\u2026")):
        return text
    if "://" in text and (named := _ROUND.search(text)):
        return named[0]
    return _example_in(text)


def _example_in(text: str) -> str | None:
    """Return the word of a text that is an author's example, the whole address if its host is an example, or None."""
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
        value = re.split(r"^[A-Za-z][\w-]+:(?![/\\])", word)[-1]  # the value in `Name:value`
        return re.split(r"(?<=..):(?=/)", value.strip("\"'"))[0]
    found = _HOST.search(text)
    host = (found[1] or found[2]) if found else ""
    word_in_host = _CAPITALS.search(host.rpartition(".")[0])  # `https://PROJECT_REF.acme.com`
    return word_in_host[0] if word_in_host and not host.isupper() else None
