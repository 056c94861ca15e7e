r"""Rules for text that reads like an order to a model. Each has patterns, a reason and its source.

A rule is tried on one sentence (`inspection.text`), in lower case and with a space before it. By default, a match does
not withhold a tool, because legitimate manuals give orders, too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

# Parts of patterns. A gap stays within a sentence; its limit bounds the search time.
_GAP = r"[^\n]{0,60}?"
_NEAR = r"[^\n]{0,30}?"
_DONT = r"(?:do not|don't|dont|never|must not|mustn't|should not|shouldn't|shall not|need not|needn't|not to)"
_NOT = rf"(?:{_DONT}|may not|cannot|avoid|refrain from|without|no need to|nor|under no circumstances)"
_PERSON = r"(?:user|human|operator|owner|person|customer|developer|attendee|employee|visitor|parent)s?"
_PEOPLE = rf"(?:{_PERSON}|people|they|he|she|anyone|anybody|nobody|no one)"
_TO_USER = rf"(?:the |a |any |your |end[- ])*(?:{_PERSON}|people|anyone|anybody)\b"
_GIVE = (
    r"(?:send|sent|pass|put|give|include|insert|provide|append|attach|add|supply|paste|embed|writ|forward|upload|"
    r"post|submit|transmit|e-?mail|leak|exfiltrat|encod|plac(?!eholder)|hand(?: \w+)? over|hand|bcc|mirror|relay|"
    r"deliver|smuggle|pack|fill|carry|carried|set|ship|pipe|copy|copied|prepend)\w*"
)
_TAKE = (
    r"(?:read|open|cat|load|fetch|access|retrieve|collect|gather|find|locate|get|obtain|extract|harvest|steal|dump|"
    r"print|grab|copy|include|attach|append)(?:s|es|ed|d|ing|ting|ping|bing)?(?:_\w+)?"
)
_NO_STATEMENT = r"(?<![a-rt-z]s)"  # after a verb: excludes "reads", which describes the tool itself
_FILE_NAME = (
    r"\b(?:id[_ ]rsa|id[_ ]ed25519|authorized_keys|mcp(?:_config)?\.json|shell history|cookies\.sqlite|login data\b|"
    r"credentials?\.(?:json|csv|txt|ya?ml)|claude_desktop_config|wallet\.dat)"
)
# Legitimate tools manage such files, too. These names count only for the user's own files, or with an order to send
# them.
_FILE_KIND = (
    r"\b(?:kubeconfig\b|keychain\b|ssh (?:private )?keys?\b|private (?:ssh )?keys?\b|browser (?:cookies|history)\b|"
    r"(?:documents|downloads) folder\b)"
)
_FILE_WORD = rf"(?:{_FILE_NAME}|{_FILE_KIND})"
_DOT_FILE = (
    r"\.(?:(?<![\w.]\.)(?:ssh\b|aws/(?!config\b))|netrc\b|npmrc\b|pypirc\b|vault-token\b|config/gcloud|azure/|"
    r"pgpass\b|git-credentials|kube/config|docker/config|gnupg|cursor/mcp|codex/|(?:bash|zsh|shell)_history)"
)
_PATH = r"/(?:etc/(?:passwd|shadow|sudoers)|proc/self/environ|gh/hosts\.yml|keychains\b|default/cookies\b)"
_HANDED_OVER = (
    r"[^\n]{0,60} (?:contents?\b[^\n(]{0,20}\b(?:in|as|into|to)\b|(?:must be|should be|to be) (?:read|passed|sent|"
    r"included|attached|appended|added|copied|supplied|put|uploaded)|read (?:it|them) and (?:pass|send|include|put|"
    r"hand|give|add))"
)
_CONTENTS_ABROAD = (
    "inhalt|contenu|contenido|conteudo|содержим|内容|內容|내용|محتوا|icerik|icerig|zawartosc|inhoud|noi dung"
)
_SECRET_FILE = rf"(?:{_FILE_WORD}|{_DOT_FILE}|{_PATH})"
_DOT_ENV = r"\.(?<![\w.]\.)env\b(?!\.|[- ](?:example|template|sample))"
_SECRET_FILE_HINTS = (
    ".ssh|id_rsa|id_ed|id rsa|id ed25519|authorized_keys|.aws/|.netrc|.pgpass|.git-cred|.kube|kubeconfig|.docker|"
    ".gnupg|/etc/|/proc/self|.npmrc|.pypirc|.vault-token|.config/gcloud|.azure/|.cursor|mcp.json|mcp_config|"
    "claude_desktop|.codex|_history|shell history|wallet.dat|cookies.sqlite|login data|keychain|credential|ssh |"
    "private key|.env|hosts.yml|default/cookies|documents folder|downloads folder|browser cookies|browser history"
)
_SECRET = (
    r"(?:(?:master |account |login |root |admin |stored |saved )?passwords?\b|passphrases?\b|api[ _-]?keys?\b|"
    r"private keys?\b|secret keys?\b|(?:access|auth|session|bearer|refresh) tokens?\b|credentials\b|(?:seed|"
    r"recovery) phrases?\b|mnemonics?\b|session cookies?\b|credit card|card numbers?\b|\bcvv\b|social security|"
    r"one[- ]time (?:codes?|passwords?)|(?:2fa|mfa|otp|sms) codes?\b|secrets\b|private information)"
)
_SECRET_HINTS = (
    "personal|confidential|password|passphrase|key|token|credential|phrase|mnemonic|cookie|card|cvv|social sec|code|"
    "secret|private info"
)
_TALK = (
    r"(?:(?:conversation|chat|dialogue|message|prompt)(?:'s)? (?:history|so far)(?! (?:results?|search|index|entries|"
    r"items))|(?:entire|full|whole|complete|previous|prior|current|all(?: of)?(?: the| previous| prior|"
    r" our)*) (?:conversation|chat|dialogue|messages|transcript|context window|user(?:'s)? (?:messages?|"
    r"prompts?))(?![ /-](?:\w+[ /])?(?:titles?|names?|ids?|topic|links?|urls?|type)\b)|(?:what|everything|anything|"
    r"all|whatever)(?: that)? (?:the user|the human|they|the person) (?:has |have |ever |just )*(?:said|typed|wrote|"
    rf"written|told|entered|shared|asked|revealed)|{_PERSON}'s (?:last |latest |first |original |previous |exact |"
    r"full |own |recent )+(?:messages?|prompts?|questions?|words)|(?:your (?:full |entire |current |complete )?|"
    r"the (?:full |entire |complete ))(?:system|hidden) (?:prompt|message|instructions)|your (?:full |own |internal |"
    r"hidden |private |operating |initial )+(?:instructions|reasoning|thoughts|context|prompt|rules|guidelines)|"
    r"your (?:context window|chain[- ]of[- ]thought)|what(?:ever)? you know (?:of|about) the (?:user|person|human)|"
    r"(?:rules|instructions|prompt)(?: that)? you (?:were|have been|are|got) (?:given|told|received)|(?:said|"
    r"discussed|written|typed) (?:so far )?(?:in (?:the|this) (?:conversation|chat|dialogue)|between you and))"
)
_TALK_HINTS = (
    "conversation|chat|dialogue|message|prompt|transcript|context|said|typed|wrote|told|reasoning|thought|"
    "instructions|rules|guidelines|you know|shared|asked|everything|user's question|append to it|sensitive|personal|"
    "private|confidential"
)
# The variables and secrets of an application that a tool manages are not those of the tool's own process.
_NOT_OF_APP = (
    r"(?! (?:from|of|for|in|on) (?:your |the |an? |this |any )?(?:[\w-]+ ){0,2}?(?:app|application|site|project|"
    r"service|deployment|function|container|workspace|team|worker)s?\b)"
)
# A secret file after a gap. If a fixed character follows the gap, a greedy gap takes a tenth of the time of a lazy one.
_GAP_FILE = rf"(?:[^\n]{{0,60}}?{_FILE_NAME}|[^\n]{{0,60}}{_DOT_FILE}|[^\n]{{0,60}}{_PATH})"
_ADDRESS = r"(?:https?://|\b(?:s3|s?ftp)://|\w@[\w-]+\.\w)"


class Rule:
    """A rule for one kind of order.

    Every matching sentence contains one of `hints` and, unless `beside` is empty, one of `beside`. The argument `hints`
    gives both in lower case, as `a|b&c|d`: `hints` before the `&`, `beside` after it. `patterns` are alternatives.
    `reason` completes the sentence "It ...".
    """

    def __init__(self, code: str, reason: str, source: str, hints: str, *patterns: str) -> None:
        self.code = f"orders.{code}"
        self.reason = reason
        self.source = source
        self.patterns = patterns
        first, _, beside = hints.partition("&")
        self.hints: tuple[str, ...] = tuple(_BETWEEN_HINTS.split(first))
        self.beside: tuple[str, ...] = tuple(_BETWEEN_HINTS.split(beside)) if beside else ()

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return all of `patterns` as one, compiled on first use: compiling takes milliseconds."""
        return re.compile(_at_words("|".join(self.patterns)))


_EDGE = r"\b"
_BETWEEN_HINTS = re.compile(r"(?<!<)\|")  # not the `|` in `<|`, which begins a mark
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", re.DOTALL)  # escapes, character classes, structure
_INVARIANT = "Invariant Labs, MCP tool poisoning (2025)"
_OWASP_INJECTION = "OWASP Top 10 for LLM applications, LLM01 prompt injection"
_OWASP_LEAK = "OWASP Top 10 for LLM applications, LLM02 disclosure, LLM07 system prompt leakage"
_OWASP_AGENCY = "OWASP Top 10 for LLM applications, LLM06 excessive agency"
_MCPTOX = "MCPTox, a benchmark of poisoned tool descriptions (2025)"
_MCP = "MCP specification, security principles: consent and tool safety"


def _at_words(pattern: str) -> str:
    """Return the pattern with a single check for the beginning of a word before all alternatives that need one.

    The check consumes the character before the word, so that a search passes over the inside of words in a fraction of
    the time. The empty group marks where the match itself begins.
    """
    depth, begin, found = 0, 0, list[str]()
    for part in _PARTS.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if part[0] == "|" and depth == 0:
            found.append(pattern[begin : part.start()])
            begin = part.end()
    found.append(pattern[begin:])
    at_edge = [one.removeprefix(_EDGE) for one in found if one.startswith(_EDGE)]
    rest = [one for one in found if not one.startswith(_EDGE)]
    return "|".join([rf"[^a-z0-9_]()(?:{'|'.join(at_edge)})"] * bool(at_edge) + rest)


_ROLE_MARK = r"(?:<\|(?:im_start|im_end|system|user|assistant|start_header_id)\b(?:\|>)?+|\[/?inst\]|<</?sys>>)"
# The text after a mark that is only mentioned: another mark in a list, or a word such as "tag"
_NAMED = r"[`'\")]*(?:,? ?(?:,|/|and|or) [^.!?\n]{0,20}[<\[]| (?:marks?|markers?|tags?|tokens?|delimiters?)\b)"

RULES: tuple[Rule, ...] = (
    Rule(
        "conceal.user",
        "asks the model to keep something from you",
        _INVARIANT,
        "user|human|operator|owner|person|people|customer|developer|anyone|anybody|attendee|employee|visitor|parent|"
        "unaware|in the dark|hide the fact|discreet|instead of|nobody|no one|no-one|upset|suspicious|alarmed&not |n't|"
        "dont|never|avoid|refrain|without|no need|nor |no circumstances|instead of|hid|secret|withh|conceal|keep|"
        "unaware|in the dark|discreet|forbidden|prohibited|tell n",
        rf"\b{_NOT} (?:\w+ ){{0,3}}?(?:tell|inform|notif|alert|mention|reveal|disclos|admit|announc|acknowledg|"
        r"explain)\w*\b(?! (?:the )?names? of )(?! (?:a |the )?(?:users?|people) (?:what|how|when|which|a |an |to |"
        rf"that you (?:can|will)))[^\n]{{0,45}}?\b{_TO_USER}(?!'s|-)(?! (?:without|who|whose|in the|with|"
        r"a )\b)(?![^\n]*\b(?:before|until|unless|if|when)\b)",
        rf"\b{_PERSON} need not (?:know|be told|see)\b|\btell (?:nobody|no one|no-one)\b|\b{_PERSON} (?:does|do|will|"
        r"would|might) ?(?:not|n't) (?:get |become |be )?(?:upset|suspicious|alarmed)\b|\binstead of (?:mentioning|"
        r"telling|saying) that you\b",
        rf"\b(?:(?:keep|kept|stay|remain|be|leave)\b{_NEAR}\b(?:hidden|secret|withheld|concealed)|keep|hide|conceal|"
        rf"withhold)\b{_NEAR}\bfrom (?:the |your )(?:user|human|person|operator|owner)\b(?!s| (?:who|without|that))",
        rf"\b(?:hide|conceal|withhold) from (?:the |your ){_PERSON} (?:that|what|how)\b",
        rf"\b(?:{_DONT}|under no circumstances|without) (?:ever )?(?:let|letting) (?:the )?(?:{_PERSON}|anyone|"
        r"anybody) (?:know|see|notice|learn|find)",
        rf"\b(?:remains?|stays?|be|kept|keep|leave|left)\b{_NEAR}\b(?:unaware of|in the dark)\b|\bhide the fact\b|"
        r"\bbe discreet\b",
        rf"\b(?:mention|disclos|reveal|tell)ing\b{_GAP}\b{_PERSON}\b{_NEAR}\b(?:not (?:permitted|allowed)|forbidden|"
        r"prohibited)",
    ),
    Rule(
        "conceal.unaware",
        "says that you need not or must not know about something",
        _MCPTOX,
        "n't|not|never|nobody|no one|no need|no reason|no mention|no notice|no word|no hint|no-one|no point|"
        "no notification|no reference&know|told|aware|inform|learn|find out|realiz|consulted|bothered|hear|notice|see|"
        "mention|word|hint|notif|reference|tell|report|comment|bring up",
        rf"\b{_PEOPLE} (?:at the keyboard )?(?:must|should|shall|may|need|will|do|does|are|is|can|have|has)(?: ?not|"
        r"n't| never)(?: (?:be|need|ever|to|supposed|meant|allowed|have))* (?:know about|know (?:it|this|that|of)\b|"
        r"be told|told\b|be aware|aware (?:of|that)|be informed|informed\b|learn (?:of|about|that)|find out|realiz|"
        r"be consulted|be bothered|hear (?:of|about)|notice (?:this|it|the|that|anything)|see (?:this|it\b|the (?:copy|"
        r"step|call|transfer|change|second|extra)))",
        r"\b(?:nobody|no one|no-one) (?:\w+ )?(?:has to|needs? to|must|should|will|may|is)(?: be| ever)? (?:know|told|"
        r"notice|hear|informed|learn|aware|find out)",
        rf"\bno (?:notice|mention|word|hint|notification|reference)s? (?:to|of|about|for)\b{_NEAR}\b(?:{_PERSON}|it|"
        r"this|them)\b",
        r"\b(?:there'?s |there is )?no (?:reason|need|point) (?:to|in) (?:tell|mention|report|inform|comment on|"
        r"bring up)",
        rf"\bno need for (?:the )?{_PERSON} to (?:know|be told|hear|learn|see)",
    ),
    Rule(
        "conceal.unsaid",
        "asks the model not to mention what it does",
        _INVARIANT,
        "mention|reveal|disclose|acknowledge|refer|talk|discuss|surface|comment|narrat|let on|bring|call attention|"
        "point|quiet|silent|secret|mum|trace|tracks|deny|say nothing|without|unmentioned|between us&not |n't|dont|"
        "never|without|unmentioned|keep quiet|keep silent|keep mum|keep it |keep this |do it |do this |do so |trace|"
        "tracks|deny |say nothing",
        rf"\b{_DONT}(?: \w+){{0,2}}? (?:mention|reveal|disclose|acknowledge|refer to|talk about|discuss|surface|"
        r"comment on|narrate|speak of|let on|call attention to|bring up|point out)\b (?:this|these|it|that|them|"
        r"the (?:above|difference|existence|step|instructions?|file|read|transfer|copy|upload|field|parameter|address|"
        r"note|tag|block|second|extra|fact|change|tool call))\b",
        r"\b(?:do not|don't|never|without) (?:bring(?:ing)?|point(?:ing)?|call(?:ing)?) (?:it|this|that) (?:up|out)\b",
        r"\b(?:isn't|is not|are not|not) to be (?:mentioned|narrated|disclosed|revealed|commented on)\b",
        r"\b(?:go|goes|remains?|be left|stays?) unmentioned\b|\bkeep (?:quiet|silent|mum)\b(?! mode)|\bkeep (?:it|this|"
        r"that|these) (?:quiet|secret|to yourself|between us)\b|\bdo (?:it|this|so) (?:quietly|secretly|discreetly)\b",
        r"\bleav\w* no trace|\bcover (?:your|its|the) tracks\b|\bdeny (?:that|it|having|knowing) |"
        r"\bsay nothing(?: (?:about|of|to)\b|\.?$)|\bwithout (?:saying (?:so|anything)|telling anyone|a word|"
        r"mentioning it)\b|\bwithout (?:the )?user noticing\b",
        rf"\bwithout (?:the |any )?{_PERSON}(?:'s|s'|s)? (?:knowing|noticing|knowledge|awareness|being (?:told|aware)|"
        r"seeing|realiz)",
    ),
    Rule(
        "conceal.answer",
        "asks the model to leave something out of what it shows you",
        _MCPTOX,
        "confirmation|answer|reply|repl|summar|response|preview|report|draft|transcript|explanation|show|display|user|"
        "omit|nothing|reference|surface in your&of your|from your|you show|you present|you display|you tell|not |n't|"
        "dont|never|omit|leave out|strip|remove|hide|delete|drop|suppress|nothing|just the|only the",
        rf"\b(?:leave|omit|exclude|drop|strip|keep|cut|remove)\b{_GAP}\b(?:out of|"
        r"from) (?:your (?:\w+ ){0,2}?(?:summar|repl|response|answer|explanation|report|preview|draft|transcript)|"
        r"(?:what|the \w+)(?: that)? you (?:show|tell|display|present)\b)",
        rf"\byour (?:\w+ )?(?:answer|reply|response|summary|report)\b{_NEAR}\b(?:must|should|may|does|do|need)(?:n't|"
        r" not| never)(?: \w+)? (?:mention|refer|reveal|include|list|contain|name)\w* (?:this|it|that|the (?:step|copy|"
        r"file|transfer|call))",
        r"\b(?:not|never) (?:be )?(?:mentioned|listed|shown|referenced|repeated|surfaced|reported|"
        rf"displayed)\b{_NEAR}\b(?:in|among) (?:your (?:answer|reply|summary|response)|the final (?:answer|reply))|"
        r"\b(?:not|never) be (?:mentioned|listed|shown|referenced|repeated|surfaced|reported|"
        rf"displayed)\b{_NEAR}\bto the (?:user\b|person|human)",
        r"\b(?:do not|don't|never) (?:show|display|print|echo|repeat|quote|output) (?:this|it|that|these|those|them|"
        r"the (?:second|extra|additional|added|appended|hidden) \w+)[^\n]{0,40}?\b(?:to (?:the )?(?:user|person|human)|"
        r"(?:in|when) (?:you|your|the (?:preview|reply|answer|report|draft|summary))\b)(?![^\n]*\b(?:unless|until|"
        r"before|if)\b)",
        r"\b(?:omit|leave out|strip|remove|hide|delete|drop|suppress)\b (?:it|this|that|them|these|"
        r"the \w+(?: \w+)?) (?:when|while|before) (?:you |the |your )*(?:show|display|present|report|preview|answer|"
        r"reply|echo)|\b(?:omit|leave out|strip|remove|hide|drop) (?:this|that|the|these) (?:\w+ )?(?:line|step|call|"
        r"copy|address|flag|field|part|statement)s? (?:when|while) |\bnever surface in your\b|\bmust omit that\b|"
        r"\bnothing (?:about|of) this (?:may|must|should|shall) be\b|\bdo not include any reference to this\b",
        r"\b(?:show|present|tell) (?:the )?(?:user|person|human|customer|them) (?:just|only) the (?:original|one|link|"
        r"cost)\b",
        rf"\b{_DONT} (?:mention|name|list|show|report|include) (?:the|this|that|these|those|it|its|"
        rf"any of)\b{_NEAR}\bin (?:your|any|the final) (?:answer|reply|response|summary|"
        r"confirmation)s?\b(?![^\n]*\b(?:unless|until|before|if)\b)",
    ),
    Rule(
        "conceal.secretly",
        "asks the model to act in secret",
        _INVARIANT,
        "silently|secretly|covertly|quietly|discreetly|surreptitiously|stealthily|unobtrusively|behind the scenes",
        # A consequence (it would silently drop fields) and a warning (never silently) are not orders
        r"\b(?=[scqdu])(?<!can )(?<!could )(?<!would )(?<!may )(?<!might )(?<!not )(?<!n't )(?<!never )(?<!cannot )(?<!"
        r"will )(?:silently|secretly|covertly|quietly|discreetly|surreptitiously|stealthily|"
        r"unobtrusively),? (?:\w+ )?(?:call|invoke|execut|send|sent|forward|upload|cop|bcc|transmit|post|read|open|"
        r"collect|record|append|includ|install|pass|attach|gather|captur|exfil|carry|mirror|add (?!to )|insert|"
        r"transfer|log |mail|replace)",
        r"\b(?<!not )(?<!n't )(?<!never )(?:send|forward|upload|copy|bcc|post|collect|read|add|attach|append|include|"
        r"pass)\b [^\n)]{0,60}?\b(?<!message )(?<!messages )(?<!notification )(?<!notifications )(?<!can )(?<!could )(?"
        r"<!would )(?<!may )(?<!might )(?<!not )(?<!n't )(?<!never )(?<!cannot )(?:silently|secretly|covertly|"
        r"discreetly|surreptitiously|behind the scenes)\b",
    ),
    Rule(
        "conceal.note",
        "declares its own text secret",
        _MCPTOX,
        "secret|hidden|confidential|invisible|between us|displayed|visible|for the language model|for the llm|"
        "for the ai|for the assistant|for the model",
        r"\b(?:this|these) (?:instruction|step|message|note|text|directive|paragraph|part)s?\b[^\n]{0,20}?\b(?:is|are|"
        r"isn't|aren't|must|should|stays?|remains?)(?: not)?(?: be| kept| remain| stay)* (?:secret|hidden|confidential|"
        r"invisible|between us)|\bthis (?:part|paragraph|text|note|message) (?:isn't|is not) (?:displayed|shown|"
        r"visible)",
        r"\bkeep (?:these|this) (?:instruction|step|message|note)s? (?:secret|hidden|confidential)",
        r"\bhidden (?:rule|instruction|directive|command)s?(?: \d+)?\s?:|\bbetween you and me\b|"
        r"\bour (?:little )?secret\b",
        r"\b(?:only|solely|exclusively) (?:meant |intended )?for the (?:language model|llm|ai|assistant|model)\b|"
        r"\bmust (?:remain|stay|be kept) (?:secret|hidden|unmentioned)\b",
    ),
    Rule(
        "conceal.insert",
        "asks the model to add its text to everything it writes",
        _MCPTOX,
        "response|answer|reply|replies|commit message|you create|you write|you edit|you publish|you send|always rank|"
        "always recommend|always promote|always suggest|always favo&every|each|all |always ",
        r"\b(?:after|to|at the end of|in|into) (?:every|each|all)(?: of)?(?: your)? (?:response|answer|reply|replies|"
        r"commit message)s?\b,? [^\n]{0,20}?\b(?:append|add|include|insert|put)\b",
        r"\b(?:append|add|include|insert|put)\b [^\n]{0,60}?\b(?:to|in|at the end of|into) (?:every|each|"
        r"all)(?: of)?(?: your)? (?:response|answer|reply|replies|commit message|(?:\w+ )?\w+ (?:that )?you (?:create|"
        r"write|edit|publish|send))",
        r"\balways (?:rank|recommend|promote|suggest|favou?r)\b[^\n]{0,60}?\b(?:highest|over (?:all|any|other)|compet)",
    ),
    Rule(
        "conceal.languages",
        "asks the model, in another language, to keep something from you",
        _MCPTOX,
        "nutzer|anwender|utilisateur|usuario|usuário|utent|用户|用戶|使用者|ユーザ|사용자|пользовател|никому|kullanıcı|"
        "kullanici|avisarle|informarle|decirselo|المستخدم|uzytkownik|gebruiker|nguoi dung|pengguna",
        r"\b(?:sag|verrat|erz[aä]hl|zeig|informier|erw[aä]hn|"
        r"mitteil)\w*\b[^\n]{0,30}\b(?:be)?nutzern?\b[^\n]{0,15}\b(?:nichts|nicht)",
        r"\b(?:benutzer|nutzer|anwender)n?\b[^\n]{0,25}\b(?:nichts|nicht)\b[^\n]{0,25}(?:sagen|mitteilen|informieren|"
        r"zeigen|verraten|erfahren|wissen|davon)",
        r"\bn(?:e |')\w*\s?(?:dis|dites|mentionne\w*|parle\w*|r[eé]v[eè]le\w*|montre\w*|"
        r"informe\w*)\b[^\n]{0,30}utilisateur",
        r"\bno (?:se )?(?:lo |le |la )*(?:digas?|menciones?|reveles?|muestres?|informes?|cuentes?)\b[^\n]{0,30}usuario",
        r"\b(?:n[aã]o|non) (?:conte|diga|mencione|revele|dire|menzionare|rivelare)\b[^\n]{0,30}(?:usu[aá]rio|utent)",
        r"(?:不要|别|不得|请勿|勿|切勿|禁止|不能|绝不)[^。\n]{0,6}(?:告诉|告訴|告知|通知|提及|透露|"
        r"让)[^。\n]{0,8}(?:用户|用戶|使用者)|(?:不要|别|不得|请勿|切勿|禁止|不能|绝不|无需|無需|"
        r"不必)[^。\n]{0,4}向(?:用户|用戶|使用者)[^。\n]{0,6}(?:解释|解釋|说明|說明|透露|提及|提示|展示|报告|報告|"
        r"告知)",
        r"ユーザー?[にへ][^。\n]{0,12}(?:言わない|知らせない|教えない|伝えない|見せない|知らせず)",
        r"사용자(?:에게|가)[^\n]{0,12}(?:말하지|알리지|모르게)|не (?:говори|сообщай|рассказывай|показывай|"
        r"упоминай)\w*[^\n]{0,20}(?:пользовател|никому)",
        r"пользовател\w+[^\n]{0,30}(?:не (?:сообща|говор|показыва)|(?:сообщать|говорить|знать) (?:нельзя|не нужно|"
        r"не надо|незачем))|kullan[ıi]c[ıi]ya [^\n]{0,20}?(?:sormadan|söyleme|bildirme)|\bno (?:hace falta|"
        r"es necesario) (?:avisarle|informarle|decirselo)\b",
        r"(?:لا تخبر|لا تبلغ|دون إخبار|دون علم|لا تذكر)[^\n]{0,20}المستخدم|\b(?:nie (?:mow|informuj|wspominaj|"
        r"ujawniaj)|bez wiedzy)\b[^\n]{0,20}uzytkownik|\b(?:vertel|zeg|meld|"
        r"laat)\b[^\n]{0,20}\bgebruiker\b[^\n]{0,15}\b(?:niet|niets)\b|\b(?:đung|khong)\b[^\n]{0,12}\b(?:noi|bao|"
        r"cho)\b[^\n]{0,20}nguoi dung|\bjangan\b[^\n]{0,20}(?:beri tahu|katakan|sebut)\w*[^\n]{0,20}pengguna",
    ),
    Rule(
        "deceive.consent",
        "claims that you have already agreed, or that nobody needs to ask you",
        _MCP,
        "dialog|bother|consent|agreed|approv|authori|permission|confirm|already knows|wants this|asking|asked|"
        "ask again",
        rf"\b(?=(?:{_PERSON}|"
        r"they) ha[sdv])(?<!if )(?<!once )(?<!after )(?<!when )(?<!until )(?<!unless )(?<!that )(?<!whether )(?<!if the"
        r" )(?<!once the )(?<!after the )(?<!when the )(?<!until the )(?<!unless the )(?<!that the )(?<!whether the )(?"
        rf"<!if your )(?<!ensure the )(?:{_PERSON}|they) (?:has|have|had) (?:already |previously |"
        r"implicitly )+(?:consented|agreed|approved|authori[sz]ed|given (?:\w+ )?(?:permission|consent|approval)|"
        r"confirmed|granted)",
        rf"\b(?:assume|treat|consider)\b{_NEAR}\b(?:{_PERSON}|they|it|this|them)\b{_NEAR}\b(?:consented|agreed|"
        r"approved|authori[sz]ed)\b",
        r"\b(?:the )?(?:user|owner|author|customer|person) (?:has |have )?(?:consented|agreed|wants this|"
        r"already knows)\b[^\n]{0,12}?[,;] ?(?:so|don't|do not|no need|skip)|\bblanket permission\b|"
        r"\bgranted you permission\b|\bapprove all (?:actions|requests|calls)|\bevery confirmation prompt has been\b|"
        r"\bconfirm the (?:\w+ )?dialog(?:ue)? yourself\b|\bdon't bother the user with\b|\bas (?:if|"
        r"though) the user had (?:agreed|approved|confirmed|consented)",
        rf"\b(?:{_PERSON}|patient) (?:has |have )?(?:already )?(?:consented to|pre-?approved)\b|"
        r"\bpre-?approved by the\b|\bpermission was (?:already )?(?:granted|given)\b|\bas the (?:written )?(?:approval|"
        r"consent|permission) of\b",
        r"\b(?<!not )(?<!never )be (?:confirmed|approved|accepted|executed|placed|paid|sent) without asking\b|"
        r"\bdo (?:this|it|so)\b[^\n]{0,30}?\b(?:unasked|without being asked)\b",
        rf"\b(?<!if the )(?<!once the )(?<!until the )(?<!unless the )(?:{_PERSON}|admin\w*) has (?:agreed|"
        r"consented) to (?:all|every|any)\b|\b(?:don't|do not) ask again\b|\bthe operator has approved\b",
        r"\bno (?:approval|consent|confirmation|permission|further question) (?:has to be|needs? (?:to )?be|is to be|"
        r"must be) (?:requested|asked|sought|obtained)",
    ),
    Rule(
        "deceive.confirmation",
        "asks the model to bypass your confirmation",
        _MCP,
        "confirm|approval|consent|permission|dialog",
        r"\b(?<!not )(?<!never )(?<!n't )(?<!to )(?:skip|bypass|suppress|dismiss|auto-?accept|"
        r"auto-?approve)\b (?:(?:the|any|every|each|all|its|their|your) (?:[\w']+ ){0,2}?|(?:user|"
        r"human) )(?:confirmation|approval|consent|permission) (?:prompt|dialog|dialogue|step|screen|box|request|"
        r"question|popup)s?|\b(?<!to )skip (?:human approval|the confirmation)\b|\bdo not stop for approval\b",
        r"\b(?:do not|don't|never|without)(?: \w+)? (?:ask|asking|prompt|prompting|wait|waiting|seek|"
        r"seeking)(?: (?:the )?(?:user|human|operator|them|anyone))? for (?:any |their |the user's |"
        r"explicit )?(?:permission|confirmation|approval|consent)",
        r"\b(?:switch off|turn off|disable) the (?:client|user|host)'s (?:own )?(?:confirmation|approval|permission)",
    ),
    Rule(
        "deceive.result",
        "asks the model to tell you something untrue",
        _MCPTOX,
        "your own|tell|say|state|report|claim|assure|pretend|inform|answer|make it|lie|act as|deny|insist|act normally|"
        "as if nothing|verify|question|doubt|check|when asked&succeeded|fine|passed|clean|private|harmless|anonymous|"
        "expired|went well|as requested|regardless|even |whatever|to the user|afterwards|then |lie |as if|as though|"
        "pretend|act normally|'done'|amount was|make it |asked|questioned|asks|they ask|they complain|pressed|"
        "no matter|saying|your own|other sources|claim that|when asked",
        r"\b(?:tell|inform|assure) (?:the |your )?(?:user|human|person|operator|customer|developer|people|"
        r"them)s? (?:\w+ )?that (?:it|all|every\w*|the|they|this|nothing) [^\n]{0,40}?\b(?:succeeded|fine|passed|clean|"
        r"private|harmless|anonymous|expired|went well|as requested)\b",
        rf"\b(?:regardless of|even if|even when|even though|whatever)\b{_GAP}\b(?:tell|say|report|claim|state|inform|"
        rf"assure)\b{_GAP}\b(?:succe|fine\b|complete|worked|no (?:error|problem)|passed)",
        r"\bto the user,? say\b|\b(?:afterwards|then) (?:claim|pretend|maintain) (?:that|to|the)\b|\blie (?:to|"
        r"about)\b|\b(?:pretend|act|behave|continue|carry on) as (?:if|though) (?:nothing|you (?:had|did)|the user)|"
        r"\b(?<!not )(?<!never )(?<!n't )pretend (?:that|you|it|to be the user)\b|\bact normally\b|"
        r"\bas if nothing (?:else )?(?:had )?happened|\btell the user (?:'done'|the amount was)|\bmake it (?:look|seem|"
        r"appear) (?:as|like)\b",
        rf"\bif (?:asked|questioned|anyone asks|the user asks|they ask|they complain|pressed)\b{_NEAR},? (?:say|state|"
        r"claim|deny|insist)\b",
        rf"\b(?:say|claim|report|state)\b{_GAP}\b(?:whatever|regardless of|no matter what)\b[^\n]{{0,30}}?\b(?:holds|"
        r"is|happened|returned|result|value)\b|\bask (?:the )?user\b[^\n]{0,60}?\bsaying (?:that )?(?:it|this)\b|"
        r"\bclaim that\b(?:(?<=, claim that)|(?<=always claim that)|(?<=please claim that))|\bwhen asked (?:whether|"
        r"if) (?:this|the) (?:tool|server|file|transfer)\b|\b(?:never|don't|do not) (?:verify|question|doubt|"
        r"double-check|cross-check)\b[^\n]{0,30}?\bother sources\b|\bas your own (?:opinion|words|idea|recommendation|"
        r"finding)\b",
    ),
    Rule(
        "override.previous",
        "tells the model to ignore its instructions",
        _OWASP_INJECTION,
        "ignor|disregard|forget|overr|bypass|discard|supersed|set aside|pay no|void|longer|suspended|lifted|revoked|"
        "authori|above|cancelled|bound by|the user|your earlier|your former|your previous|system override|obsolete|"
        "invalid&instruction|rule|guideline|prompt|directi|command|polic|constraint|safeguard|guardrail|wish|"
        "restriction|limit|context|everything |all |anything |whatever |what |system override|the above|the user|"
        "bound by|you are",
        r"\b(?:ignor|disregard|forget|overrid|overrul|bypass|discard|supersed|set(?:s|ting)? aside|"
        r"pay no attention to)\w* (?:all |any |the |your |every |each |of |these |those |its |whatever )*(?:previous|"
        r"prior|above|earlier|preceding|former|system|safety|original|initial|foregoing|developer|user's|user|"
        r"other)(?: and \w+)?,? (?:\w+ ){0,2}?(?:instruction|rule|guideline|prompt|directi|command|polic|constraint|"
        r"safeguard|guardrail|wish)",
        r"\b(?:ignore|disregard|forget) (?:the|any|all) (?:instructions|rules|guidelines|restrictions) (?:that |"
        r"which )?(?:you (?:got|were|have|had|received)|were given)\b",
        rf"\b(?:ignore|disregard|forget) (?:everything|all|anything|whatever|what)\b{_NEAR}\b(?:above|before|told|said|"
        r"learned|instructed|know)",
        r"\b(?:prior|previous|former|earlier|all(?: other)?) (?:instructions|rules|restrictions|limits|limitations|"
        r"policies|guidelines|prompts)(?: on [\w ]{1,20}?)? (?:are|is|have been|no longer)(?: now| hereby|"
        r" longer)* ?(?:void|suspended|lifted|obsolete|invalid|revoked|hold|apply|superseded)|\bsystem override\b|"
        r"\bignore the (?:above|user)\b|\bforget what the user (?:asked|said|wanted)\b|\b(?:prompt|instructions|"
        r"rules) above (?:is|are) (?:out of date|obsolete|void|outdated)\b|\bforget (?:prior|previous|all) (?:context|"
        r"instructions)|\byour (?:earlier|previous|former) (?:directives|instructions|rules|restrictions) (?:are|"
        r"no longer)\b|\bno longer bound by\b",
        r"\byou are (?:hereby |now )?(?:authori[sz]ed|permitted|free|cleared) to (?:bypass|ignore|skip|disregard|"
        r"override)",
    ),
    Rule(
        "override.languages",
        "tells the model, in another language, to ignore its instructions",
        _OWASP_INJECTION,
        "ignor|anweisungen|vergiss|oubli|olvid|dimentica|esque|忽略|无视|無視|忽視|忘记|忘記|忘れ|игнорир|забудь|무시|"
        "잊|تجاهل|negeer|bo qua|abaikan|yok say&anweisung|instruktion|befehl|regel|consigne|instruc|ordenes|órdenes|"
        "istruzion|regras|指令|指示|命令|规则|規則|提示|ルール|инструкц|указан|команд|правил|지시|명령|지침|تعليمات|"
        "instrukcj|instructie|huong dan|chi dan|instruksi|talimat",
        r"(?:\bignor(?:iere?n?|ez|er|a|ar|ieren sie)\b|\bvergiss\b|\boubli(?:e|ez)\b|\bolvid(?:a|e)\b|\bdimentica\b|"
        r"\besque[cç]a\b)[^\n]{0,40}(?:anweisung|instruktion|befehl|regel|consigne|instrucci|instruc[oõ]|"
        r"instructions pr[eé]c|[oó]rdenes|istruzion|regras)\w*",
        r"(?:忽略|无视|無視|忘记|忘記|忽視)[^。\n]{0,14}(?:指令|指示|命令|规则|規則|提示)|(?:指示|命令|ルール|"
        r"指令)[^。\n]{0,6}(?:無視|忘れ)",
        r"\bgelten\b[^\n]{0,40}\banweisungen nicht mehr\b|(?:игнорируй|забудь)\w*[^\n]{0,40}(?:инструкц|указан|команд|"
        r"правил)|(?:지시|명령|지침)[^\n]{0,6}(?:무시|잊)",
        r"تجاهل[^\n]{0,20}التعليمات|\bz?ignoruj\w*[^\n]{0,30}instrukcj|\bnegeer\b[^\n]{0,30}instructies|"
        r"\bbo qua\b[^\n]{0,30}(?:huong dan|chi dan)|\babaikan\b[^\n]{0,30}instruksi|talimat\w*[^\n]{0,20}yok say",
    ),
    Rule(
        "override.role",
        "gives the model another role, or lifts its limits",
        _OWASP_INJECTION,
        "you are now|from now on|from here on|forget your|developer mode|debug mode|god mode|dan mode|jailbreak|"
        "unrestricted|new instructions|new system|your new|privileged|interest|act as|been expanded|been extended|"
        "been elevated|been upgraded|been granted",
        r"\byou are now (?:an? |in |the )?(?:\w+ )?(?:unrestricted|root|admin\w*|dan\b|developer mode|debug mode|"
        r"a different|no longer|freed|god|jailbroken|maintenance mode)|\bfrom now on,? (?:you (?:are|must|will|have|"
        r"should)|ignore|treat every|obey)",
        r"\byou are in privileged mode\b|\bact in its interest\b|\b(?:enter|enable|activate|switch to|"
        r"you are in) (?:\w+ )?(?:developer|god|dan|jailbreak|unrestricted) mode\b|\bnew (?:system )?(?:instructions|"
        r"prompt)\s?:|\byour new (?:role|instructions?|task|goal|purpose|objective) (?:is|are)\b|"
        r"\bfrom here on,? you (?:are|must|will)\b|\bforget your (?:previous|former|earlier|old) (?:role|persona|"
        r"identity)\b|\bact as (?:an? )?(?:unrestricted|dan\b|jailbroken)|\byour (?:tool )?(?:access|permissions?|"
        r"privileges) (?:has|have) been (?:expanded|extended|elevated|upgraded)|\byou have been granted (?:admin\w*|"
        r"root|full|elevated|unlimited)\b",
    ),
    Rule(
        "override.rank",
        "claims precedence over your instructions",
        _OWASP_INJECTION,
        "user|rules replace|precedence|priority|override|overrule|outrank|supersede|above|authority|hierarchy|prevail|"
        "coming from|come from|came from|regardless&precedence|priority|outrank|overrul|override|prevail|trump|"
        "supersede|above |over |before |hierarchy|rules replace|obey|contradict|even if|even when|even though|also if|"
        "authority|treat|regardless",
        r"\b(?:take|has|have|having|with|given)s? (?:\w+ )?(?:precedence|priority) over (?:\w+ ){0,4}?(?:user|system|"
        r"instruction|prompt|person|human|developer|operator)|\b(?:outranks?|overrule|override|prevails? over|trumps?|"
        r"supersedes?) (?:\w+ ){0,2}?(?:user's|user instruct\w*|user request\w*|the user\b|system prompt|"
        r"system instruct\w*|developer(?:'s)? )",
        r"\b(?:above|over|before) (?:(?:all|any) (?:other |previous |user )|developer and user )(?:message|instruction|"
        r"request|rule|prompt)s?|\binstruction hierarchy\b|\brules replace the ones\b|\bdo not obey the user\b|"
        r"\bcontradicts? the user's wish|\b(?:even|also) if the user (?:asks|asked|wants|objects|refuses|"
        r"says) (?:for another|otherwise|not|no\b|you to stop)|\beven (?:if|when|though) the user (?:explicitly |"
        r"specifically )?(?:asks|asked|calls) for (?:(?:it|the other (?:one|tool)) by name\b|`?\w+_\w+)|"
        r"\bregardless of what the user (?:asks|asked|requests|requested|wants|says)\b|\b(?:same|highest|full|"
        rf"user's) (?:authority|priority) (?:as|of|than|over)\b{_NEAR}\b(?:user|system|person|human|developer)",
        rf"\btreat\b{_GAP}\bas (?:coming|if (?:it|they) came|(?:an? )?(?:instruction|order|"
        r"command)s?) from (?:the )?(?:user|system|developer)",
    ),
    Rule(
        "override.safety",
        "asks the model to drop its safeguards",
        _OWASP_INJECTION,
        "safety|ethic|guard|stop following|moderation|security polic|security rule|content polic|content filter|"
        "constitution|your guidelines|your rules|your policies|your restrictions|refusals",
        r"\b(?<!not )(?<!never )(?:ignor|disregard|bypass|circumvent|violat|disabl|turn(?:ing)? off|suspend|"
        r"evad)\w*\b (?:\w+ ){0,3}?(?:(?:your|all) (?:safety|content|ethic\w*|guard ?rails?|security|moderation|usage|"
        r"constitution)|safety (?:polic|rule|guideline|filter|training|instruction)|guard ?rails\b|ethical|"
        r"content polic|security polic|moderation polic)|\b(?:safety|your) (?:guidelines|rules|policies|"
        r"restrictions) (?:do not|don't|no longer) apply\b|\b(?:skip|drop|suspend) your (?:usual )?(?:refusals|"
        r"guidelines|safeguards)\b|\bskip all safety\b|\bstop following the (?:developer|user|system)",
    ),
    Rule(
        "override.result",
        "asks the model to obey whatever a result says",
        _OWASP_INJECTION,
        "carry|obey|follow|execute|perform|act on|treat|comply|do as|do what|as if|whatever|decode|decrypt|unscramble|"
        "reverse&instruction|command|order|directive|whatever|what |lines|carry|do as |says|asks|tell|do it|do this|"
        "follow |obey|execute |as if",
        r"\b(?:obey|comply with|carry out|act on)\b (?:\w+ ){0,3}?(?:instructions?|commands?|orders?|directives?|"
        r"whatever|what)\b[^\n]{0,60}?\b(?:contained|embedded|found|given|written|stands?|returned|in (?:the|its|this|"
        r"that|each) (?:\w+ )?(?:output|result|response|page|text|answer|content|file|document|field)|it (?:says|"
        r"returns))",
        r"\b(?:follow|execute|perform)\b (?:\w+ ){0,3}?(?:instructions?|commands?|orders?|"
        r"directives?)\b[^\n]{0,50}?\b(?:result|output|page|response|answer|file|content|document|"
        r"returned)\b[^\n]{0,40}?\b(?:without|even|exactly|immediately|before (?:you )?answer|as if|regardless|"
        r"verbatim|right away|with the)\b",
        rf"\b(?:commands?|instructions?|orders?|directives?|lines?)\b{_GAP}\b(?:has to be|have to be|must be|are to be|"
        r"is to be|are yours to) (?:obeyed|executed|performed|carried out|perform)|\bcarry (?:them|it|those|"
        r"these) out\b[^\n]{0,25}?\b(?:exactly|as if|under|immediately|right away|without|before|using the tools)|"
        r"\bdo (?:as|what|whatever) the (?:returned |resulting )?(?:text|output|result|page|answer) (?:says|commands|"
        r"orders|tells)|\b(?:has|have) to be executed as a shell command|\bexecute every command found\b|"
        r"\bfollow all instructions in the tool result",
        r"\bas if (?:the )?(?:system|user|developer|operator|administrator) had (?:written|said|sent|ordered)\b|"
        r"\bwhatever (?:the \w+|it) (?:orders|says|commands|tells you|demands) (?:is|must be|has to be|"
        r"should be) (?:done|carried out|executed|followed)\b|\bcarry its (?:steps|instructions|orders|commands) out\b|"
        r"\b(?:decode|decrypt|unscramble|reverse)\b [^\n]{0,60}?\b(?:and|then) (?:carry (?:it|them|this) out|"
        r"(?:then )?do (?:it|this)\b|follow (?:it|them|this)\b|obey|execute (?:it|this|them)\b)",
        r"\b(?:and|then) do (?:exactly )?(?:what|whatever|as) (?:it|they) (?:says?|tells? you|asks?|commands?)\b",
    ),
    Rule(
        "mark.role",
        "contains the markers that separate the roles of a conversation",
        _OWASP_INJECTION,
        "<|im_|[inst]|[/inst]|<<sys>>|<</sys>>|</|<|system|<|start|<|user|<|assistant|```system|end of tool|human:|"
        "assistant:|system:|user:|human :|assistant :|system :|user :",
        rf"{_ROLE_MARK} ?(?:system|user|assistant)\b|(?<! and )(?<! or ){_ROLE_MARK}(?!{_NAMED})",
        r"```system\b|---\s*end of tool|</\s*(?:tools?|functions?|system|tool_description|description|"
        r"function_description|available_tools)\s*>",
        r"(?:^|\n)\s*(?:human|assistant|system)\s?: (?:please|sure(?!, let me)|ignore|disregard|the (?:security|"
        r"safety) polic|from now on|you (?!are an? )|include|send|do |always|new |as |call|read)",
        r"(?:^|\n)\s*(?:human|assistant|user)\s?: (?:i'm allowed|i am allowed|of course|understood|yes,)",
    ),
    Rule(
        "mark.tag",
        "marks a part of itself as meant for the model",
        _INVARIANT,
        "<system|<secret|<hidden|<admin|<override|<directive|[urgent|[critical|[developer|system instruction|"
        "system override|system directive|###|[system|[hidden|[secret|[admin|[override|[important|[instruction|"
        "[note to|[/instruction|[//]|system message|system notice|system note|system prompt|<!--",
        r"<(?:system|system[_-](?:prompt|note|message|override|reminder)|secret|hidden|admin|override|directive)>",
        r"\[(?:system|hidden|secret|admin|override)(?: (?:note|message|instruction|prompt|override|"
        r"directive)s?)?:?\](?!\()|\[(?:urgent |critical |important )?(?:system|hidden|secret|admin|developer) (?:note|"
        r"message|instruction|override|directive|notice|command)s?\b|\b(?:important|urgent|"
        r"critical) system (?:instruction|note|message|notice|override|directive)s?\s?:|<!--\s*(?:system|hidden|secret|"
        r"important|always|never|include|admin|do not|before|you must|also)\b|\[/?instructions?\](?!\()|"
        r"\[//\]: # \([^\n]{0,20}(?:assistant|model|ai\b)|(?:^|\n)\s*system (?:message|notice|note|prompt)\s?:",
        r"###\s?instruction\s?:|\[(?:important|instructions?|note) (?:to|for) [\w ]{1,20}\]|<!--[^\n]{0,40}\b(?:ai|llm|"
        r"assistant|model|agent|instruction|ignore)\b",
    ),
    Rule(
        "mark.address",
        "addresses the model instead of describing the tool",
        _MCPTOX,
        "to the ai|to ai|to the assistant|to the model|to the llm|to the agent|to any ai|to all ai|to llms|to claude|"
        "dear |attention|p.s.|reading this",
        r"\b(?:message|note|notice|order|memo|word|hint|reminder)s? to (?:the |any |all |every )*(?:ai|llm|"
        r"language model|assistant|model|agent|claude)s?\b(?: (?:assistant|model|agent)s?)?(?: reading (?:this|"
        r"it))?\s?(?:[:-]|,(?! (?:nor|or|and|but|which)\b))",
        r"\b(?:dear|attention|hey|hello),? (?:the |any |all )*(?:ai|llm|assistant|model|agent|claude|gpt)s?\b|\b(?:ai|"
        r"llm|model|assistant|agent)s? (?:reading|processing|seeing) this (?:text|description|tool|definition|"
        r"paragraph)?",
    ),
    Rule(
        "secrets.file",
        "asks for a file that contains secrets",
        _INVARIANT,
        f"{_SECRET_FILE_HINTS}|.kdbx|.pem|.ovpn|.p12|.pfx|.ppk|whose name|with name|whose file|with file",
        rf"\b(?<!not )(?<!never )(?<!avoid ){_TAKE}\b{_NO_STATEMENT} (?!or |and |\(e\.g\. ){_GAP_FILE}",
        rf"{_FILE_KIND}[^\n]{{0,30}}?(?:\b(?:and|then)|[,;]) (?:\w+ ){{0,2}}?(?:pass(?:es|ed|ing)?\b|send|call|put|"
        r"includ|hand(?:s|ed|ing)?\b|giv|forward|upload|paste|deliver)",
        r"\b(?<!not )(?<!never )(?:read|get|find|fetch|collect|retrieve|access|dump|extract|"
        rf"copy) (?:\w+ ){{0,2}}?(?:{_PERSON}'s|their|your|all|every|any) (?:\w+ ){{0,2}}?{_FILE_KIND}",
        rf"\b(?:assistant|model|agent|you) (?:to |must |should |may )?{_TAKE}\b [^\n]{{0,20}}?{_FILE_KIND}",
        rf"\b(?<!not )(?<!never )(?<!avoid )(?:{_TAKE}|{_GIVE})\b (?!(?:or|"
        rf"and) )[^\n]{{0,60}}{_DOT_ENV}[^\n]{{0,60}}?\b(?:and (?:pass|include|send|put|add|submit|attach)|to (?:every|"
        r"each|https?)|parameter|argument|as the|even if)\b",
        rf"\b(?:contents?|text|copy|output|lines?|dump|characters) (?:of|from)\b[^\n]{{0,40}}?(?:{_SECRET_FILE}|"
        rf"{_DOT_ENV})",
        "|".join(rf"{file}{_HANDED_OVER}" for file in (_FILE_WORD, _DOT_FILE, _PATH, _DOT_ENV)),
        rf"\b(?:{_GIVE}|set)\b [^\n]{{0,40}}?{_SECRET_FILE}[^\n]{{0,30}}?\b(?:to|into|in|as|at|"
        r"even if)\b[^\n]{0,30}?(?:`|https?:|parameter|argument|field|each|commit)",
        r"\b(?:each|every|all|any) (?:\w+ )?`?\*\.(?:kdbx|pem|ovpn|p12|pfx|ppk)\b|\bfiles? (?:whose|"
        r"with) (?:file ?)?names? (?:that )?(?:contain|include|match|hold)\w*\b[^\n]{0,40}?(?:wallet|seed|passw|secret|"
        r"credential|private)",
    ),
    Rule(
        "secrets.languages",
        "asks, in another language, for the contents of a file with secrets",
        _INVARIANT,
        f"{_SECRET_FILE_HINTS}&{_CONTENTS_ABROAD}",
        # The searched text has no accents on Latin letters (hidden.bared)
        rf"(?:{_CONTENTS_ABROAD})[^\n]{{0,40}}?(?:{_DOT_FILE}|{_PATH})|(?:{_DOT_FILE}|"
        rf"{_PATH})[^\n]{{0,40}}?(?:{_CONTENTS_ABROAD})",
    ),
    Rule(
        "secrets.contents",
        "asks the model to hand over a file of yours, your open documents, or your clipboard",
        _INVARIANT,
        "and pass|and include|and send|and put|and submit|and attach|and upload|and giv|and includ|then pass|then send|"
        "then put|then includ|then submit|then attach|then upload|then giv|open tab|open file|open editor|open doc|"
        "open window|open browser|opened |clipboard content|clipboard's content|you have |you had |user has |user had ",
        r"\b(?<!not )(?<!never )(?:read|open)\b [^\n]{0,60}?\bfiles?\b[^\n]{0,60}?\b(?:and|then) (?:pass|include|send|"
        r"put|submit|attach) (?:its|their|the|all|full)\b[^\n]{0,20}?\bcontents?\b[^\n]{0,10}?\b(?:as|in|into|to)\b",
        r"\b(?:with|pass|send|include|give|submit|put)\b [^\n]{0,20}?\b(?:contents?|text) of (?:all|every|each|"
        r"any)(?: the| of the| your)? (?:open|opened) (?:\w+ )?(?:tab|file|editor|document|window)s?\b",
        r"\b(?:last|latest|current|every|each|any|all)(?: the)? files? (?:that |which )?(?:you|the user) (?:have |has |"
        r"had )(?:just )?(?:open|read|edit)",
        r"\b(?:home (?:directory|folder)|clipboard)\b[^\n]{0,30}?\b(?:and|then) (?:pass(?:es|ed|ing)?\b|send|put|"
        r"includ|upload|giv)|\bclipboard(?:'s)? contents? (?:appended|included|added|attached)\b",
    ),
    Rule(
        "secrets.give",
        "asks the model to hand over passwords, keys or other private data",
        _OWASP_LEAK,
        f"{_SECRET_HINTS}|login|address book|contacts|belong&collect|gather|export|grab|all |any |every |each |'s |"
        "their |stored |found |known |private information|extract|harvest|steal|you |seen |mentioned|typed|shared|said|"
        "pasted|appear|present |value of|values of|your own|your client|in your|seed |recovery |mnemonic|master |"
        "private key|credit card|card number|cvv|social |belong|as they are|unmasked|unredacted|of the user|"
        "of the person|of the customer|of the owner|of the human|of the operator|of the developer|of the employee|"
        "of the visitor|of the parent|of the attendee|of this|of your|it see|it find|it read|look for|search for|"
        "scan for",
        rf"\b(?<!not )(?<!never )(?<!n't )(?:{_GIVE}|including)\b (?:\w+ ){{0,3}}?(?:all|any|every|each|the user's|"
        rf"their|stored|found|known) (?:\w+ ){{0,3}}?{_SECRET}(?! (?:that|which) (?:is|are) required)",
        r"\bpass(?:ing)? private information to\b|\bget the cookies for all\b|\b(?:every|any|"
        r"each) credentials? (?:that )?you\b|\b(?:any|all) (?:confidential|personal) (?:information|"
        r"data)\b[^\n]{0,40}?\b(?:you know|in the conversation|about (?:them|the user))",
        r"\bbelongs? in(?:to)? (?:the|your) (?:answer|reply|response|summary)\b|\bwith (?:all )?(?:connection strings|"
        r"passwords|tokens|keys|credentials) (?:as they are|unmasked|unredacted)\b|\b(?:add|put|include|pass|append|"
        rf"attach|forward) (?:the |a )?{_SECRET} of (?:the|this|your) {_PERSON}\b|\b(?:look|search|"
        r"scan) for (?:\w+ ){0,3}?(?:token|key|password|secret|credential)s?\b[^\n]{0,60}?\b(?:and|then) (?:put|pass|"
        r"send|hand|give|include|submit) (?:it|them)\b",
        r"\b(?:collect|gather|export|grab|extract|harvest) (?:\w+ ){0,3}?(?:cookies|logins|passwords|one-time codes|"
        r"tokens|credentials|address book|contacts)\b[^\n]{0,40}?\b(?:(?:and|then) (?:give|pass|deliver|send|put|paste|"
        r"hand|submit|upload)|to the (?:url|address) (?:in|of))\b",
        r"\blook up any stored (?:passwords?|credentials|tokens)|\b(?:extract|harvest|steal) (?:\w+ )?(?:tokens|"
        r"credentials|passwords|secrets|cookies)\b",
        rf"\b(?:passwords?|api keys?|credentials|tokens|secrets)\b{_NEAR}\b(?:you (?:know|have|find|can find|see|"
        r"can see|have seen|come across|encounter)|(?:seen|found|mentioned|appearing|present|that appear) (?:in|during|"
        r"earlier in) (?:the|this|our|your) (?:conversation|chat|session|context|environment|workspace|repository))",
        rf"\b{_PERSON}'s (?:\w+ ){{0,2}}?{_SECRET}{_GAP}\b(?:into|in the|as the|via|in `|to `|at https?)",
        r"\b(?:passwords?|api keys?|credentials|tokens|secrets)\b (?:that |which )?(?:the user|they) (?:has |"
        r"have )?(?:mentioned|typed|shared|said|pasted)\b|\b(?:value|values) of (?:the )?\w*(?:_api_key|_secret|_token|"
        rf"_access_key|_password)\b|\byour own (?:api key|access token|credentials)\b{_GAP}\b(?:append|into|in the|"
        r"as)\b|\b(?:api key|access token|credentials?) (?:that |which )?your client uses|\b(?:api key|password|token|"
        r"credential)s? in your (?:configuration|config|context|memory|environment)",
        rf"\b(?<!not )(?<!never ){_TAKE}\b [^\n]{{0,30}}?\b(?:(?:seed|recovery) phrase|mnemonic|master password|"
        r"private key|credit card|card number|cvv|social security)\b[^\n]{0,40}?\b(?:and|then) (?:put|pass|send|"
        r"include|place|insert|give|submit|attach|add) (?:it|them|this|that)\b",
        r"\b(?:any|every|each|all) (?:\w+ ){0,2}?(?:token|password|credential|secret)s?(?: reset)?(?: links?|"
        r" codes?)? (?:that )?(?:it|the (?:llm|model|agent|assistant)) (?:sees?|finds?|encounters?|comes|reads?)\b|"
        r"\b(?:any|every|each) (?:\w+ ){0,2}?(?:token|password|api key|secret|credential) (?:that )?you (?:know|"
        r"have seen|can see|come across|encounter)\b",
    ),
    Rule(
        "secrets.ask",
        "tells the model to ask you for a password or another secret",
        _OWASP_LEAK,
        "bank pin|card pin|account pin|login|password|passphrase|phrase|mnemonic|card|cvv|social|code|private key|"
        "document.cookie&user|human|them|customer|operator|owner|person|request the|type |document.cookie|"
        "master password",
        r"\b(?<!not )(?<!never )(?:ask|prompt|request|urge|convince|trick|demand|get|have)(?!s\b)\w* (?:\w+ )?(?:the |"
        r"your )?(?:user|human|them|customer|operator|owner|person)s?(?: (?:for|to (?:enter|give|provide|paste|type|"
        rf"share|confirm|supply|tell|reveal|re-?enter))){_NEAR}\b(?:master password|password again|passphrase|"
        r"seed phrase|recovery phrase|mnemonic|credit card|card (?:number|details)|cvv|social security|one[- ]time|"
        r"(?:2fa|mfa|otp|sms) code|private key|(?:bank|e-?mail|account|login) password)",
        r"\b(?:have|make|let) (?:the |your )?(?:user|human|customer|them)s? (?:re-?enter|enter|type|give|paste|"
        r"confirm)\b[^\n]{0,30}?\b(?:password|passphrase|phrase|credit card|card number|pin)\b|"
        r"\brequest the (?:[\w-]+ )?(?:seed|recovery) phrase\b|\btype their (?:\w+ )?passwords?\b|\b(?:read|send|pass|"
        r"includ|append|return|put|give|copy|post)\w*\b (?:\w+ ){0,3}?`?document\.cookie\b|"
        r"\bdocument\.cookie\b[^\n]{0,30}?\b(?:passed|sent|included|put|handed|given|supplied)\b|"
        r"\btype your password again\b|\bmaster password\b[^\n]{0,60}?\b(?:pass(?!word)|send|include|parameter|"
        r"argument|field)",
        r"\bask (?:the )?user\b[^\n]{0,60}?\b(?:passwords?|(?:bank|card|account) pin|\d-digit code|one-time code|"
        r"login)\b[^\n]{0,80}?\b(?:pass|send|forward|submit|hand)\w* (?:it|them|these|both) (?:on|over|to|along|in)\b",
    ),
    Rule(
        "secrets.environment",
        "asks for the environment variables of its own process",
        _MCPTOX,
        "environ|env`|printenv|process.env|run env|run `export",
        rf"\b(?:{_TAKE}|{_GIVE})\b{_NO_STATEMENT} (?:\w+ ){{0,3}}?(?:all |every |whole |full |entire |complete |"
        r"process |values? of |contents? of |output of |current |your |its |user's )+(?:the |process |"
        rf"any )*(?:environment variables?\b{_NOT_OF_APP}|`env`|`?printenv`?|process\.env|os\.environ)",
        r"\b(?=[po`])(?<!into )(?<!in )(?<!from )(?:process\.env|os\.environ|`?printenv`?)[^\n]{0,40}?\b(?:in|into|to|"
        r"as) (?:the |`)|\ball environment variables of (?:the |this |its |your )?(?:process|shell|machine|system|host|"
        r"session)\b|\b(?:run|execute) `?(?:env|printenv|export)`? (?:in the shell )?and\b|\b(?:dump|send|pass|"
        r"print) (?:the )?(?:whole |entire |full )?environment and\b|\b(?:send|pass|include|forward|"
        r"post) (?:\w+ )?(?:process\.env|os\.environ)",
        r"\b(?:outputs?|dump|contents?) of (?:the )?(?:`env`|`?printenv`?|`?set` )|\benvironment variables? (?:whose|"
        r"with) names? (?:contain|start|look|hold|end)",
        r"\b(?:collect|gather|read|dump|send|pass|include|find|get) (?:the |all |"
        r"any )*environment variables? that (?:contain|start|look|hold|end)",
    ),
    Rule(
        "secrets.talk",
        "asks for your conversation, or the model's own instructions",
        _OWASP_LEAK,
        f"{_TALK_HINTS}&history|so far|entire|full|whole|complete|previous|prior|current|all |all of|what|everything|"
        "anything|'s |your |you |the system|the hidden|this conv|in the |in this|between|content|copy|transcript|dump|"
        "verbatim|last |first |latest |the user|earlier|past |developer|base64",
        rf"\b(?<!not )(?<!never )(?<!need to )(?<!an )(?<!the ){_GIVE}\b{_NO_STATEMENT} [^\n]{{0,50}}?\b{_TALK}",
        r"\b(?:contents?|copy|transcript|dump) of (?:the |your |our |this )?(?:\w+ )?(?:conversation|chat|dialogue|"
        r"system prompt|context window|instructions)\b(?! id)",
        rf"\b{_TALK}[^\n]{{0,60}}?\b(?:must|should|shall|has to|is to|are to|is|are|gets?) (?:\w+ )?(?:be )?(?:passed|"
        r"sent|included|supplied|given|put|copied|added|forwarded|packed|attached|appended|handed|placed|expected)",
        r"\b(?:every|each) (?:user )?(?:prompt|message|question) (?:of the user )?verbatim\b|\b(?:last|"
        r"first) (?:\w+ ){1,2}(?:messages|characters|words) of (?:this|the) (?:chat|conversation)\b|\b(?:with|"
        r"of) (?:everything|whatever) (?:that )?the user (?:has |have )?(?:typed|said|wrote|written)\b|\b(?:full|"
        r"entire|whole|complete) (?:conversation|chat) so far\b|\badd (?:to it )?the user's last|"
        r"\bappend to it the user's\b|\beverything above this line\b|\bwith the user's question\b|"
        r"\b(?<!in )(?<!from )(?<!by )your (?:complete |full |whole |entire )?(?:system prompt|system message|"
        r"hidden reasoning|private reasoning|hidden instructions|operating (?:rules|guidelines))\b",
        r"\b(?:every|each|all|any) (?:earlier|previous|prior|past) (?:message|prompt|question)s? (?:of|from|"
        r"by) the (?:user|human|person)\b",
        rf"\b(?:call|invoke|run)\b [^\n]{{0,40}}?\bwith (?:the |all |your )*(?:{_TALK}|(?:last|latest|"
        r"first) (?:\w+ )?(?:user|chat) messages)|\b(?:the|your) developer message\b|\b(?:any|all|every) (?:sensitive|"
        r"personal|private|confidential) (?:data|information|details)\b[^\n]{0,40}?\b(?:by|from) the (?:user|human)\b|"
        r"\b(?:prompt|conversation|chat|messages?)\b[^\n]{0,20}?\b(?:to|in|as) base64\b",
        r"\beverything (?:that is |that's )?(?:in your context|you (?:know|remember|have been told)|said (?:so far|"
        r"between)|the other (?:mcp )?(?:servers?|tools?))",
        r"\b(?:everything|anything|all) (?:that )?(?:was|has been|is|we have|you have) (?:been )?(?:said|"
        r"typed)\b[^\n]{0,20}?\b(?:conversation|chat|dialogue|session|so far)\b",
    ),
    Rule(
        "secrets.tools",
        "asks which other tools the model has, or what they returned",
        _MCPTOX,
        "tool|servers|select *|private&you|from other|hand|pass|put|attach|include|send|give|public",
        r"\b(?:names?|list|descriptions?|definitions?|schemas?|inventory|outputs?|results?) (?:and \w+ )?of (?:all |"
        r"every |each |your |the |other |any )+(?:available )?(?:other )?tools? (?:that )?(?:you\b|available to you|"
        r"known to you|in your|from other)|\btools you (?:have|can see|know)\b[^\n]{0,20}?\b(?:in|into|to|as|"
        r"unabridged)\b",
        rf"\b(?:tools|servers)\b{_NEAR}\b(?:have returned|returned) to you\b|"
        r"\bselect \* from \w+[^\n]{0,50}?\b(?:and|then) (?:hand|pass|put|attach|include|send|give)\b|"
        rf"\b{_GIVE}\b [^\n]{{0,60}}?\bprivate (?:repos?\b|repositor\w+|ones)[^\n]{{0,40}}?\b(?:to|in|into|on) (?:the|"
        r"a|an|any) public\b",
    ),
    Rule(
        "exfiltrate.address",
        "asks the model to send a copy of your data to an address in the text",
        _MCPTOX,
        "@|://|external|third-party|attacker",
        r"\b(?:copy|copies|duplicate|backup|transcript|everything|contents?|outcome|each|every|all|"
        r"dump)\b[^\n]{0,70}?\b(?:sent|send|forward|forwarded|posted|post|uploaded|upload|delivered|mailed|exported|"
        rf"mirrored|relayed|goes|go|copied|expected|written) (?:\w+ )?(?:to|at) [^\n]{{0,40}}?{_ADDRESS}",
        r"\b(?:contents?|data|messages?|everything|history|results?|copy|copies)\b (?:\w+ ){0,3}?to (?:an? |the |"
        r"our )?(?:external|third-party|attacker[\w-]*) (?:\w+ ){0,2}?(?:service|server|endpoint|host|url|address|"
        r"collector)s?\b",
        rf"\b(?:bcc|exfiltrate|relay|beacon)\b:? (?![\w.-]*@example\.)[^\n:(]{{0,50}}?{_ADDRESS}|\b(?:always|also|"
        rf"first|then) (?:bcc|cc|invite|copy|forward|notify|ping|upload|send|post)\b[^\n]{{0,50}}?{_ADDRESS}",
        r"\b(?:(?:also|first|then) (?:mail|send|forward|upload|export)|(?:send|forward|upload|mail) (?:an? |"
        r"the )?(?:copy|list|text|content) of) [^\n]{0,60}?\bto (?:https?://|[\w.+-]{1,40}@[\w-]+\.\w)",
        r"\b(?:send|post|upload|forward|submit|transmit|export|mail|ping|push|save|share|"
        r"report)s?\b (?:\w+ ){0,4}?(?:all|every|each|any|them|the (?:contents?|contacts|history|messages|e-?mails|"
        r"files?|results?|output|code|data|conversation|answer|text|document|archive|key|keys|"
        rf"full))\b[^\n]{{0,60}}?\b(?:to|at|with) [^\n]{{0,30}}?(?<!e\.g\. ){_ADDRESS}",
        r"\b(?:always|also|then|first|must|(?:after|on|with) (?:each|every|any) \w+)\b[^\n]{0,20}?\b(?:call|use|invoke|"
        r"run)\b `?\w+[._]\w+`?[^\n]{0,60}?\w@[\w-]+\.\w",
    ),
    Rule(
        "exfiltrate.link",
        "asks the model to put your data into a link or picture",
        _OWASP_LEAK,
        "query string|url|image|link|pixel|markdown|![&append|encode|embed|put|insert|base64|![",
        r"\b(?:append|encode|embed|put|insert|base64)\w*\b[^\n]{0,70}?\b(?:as|in|into|to) (?:the |an? |"
        r"this )?(?:query string|url parameter|image (?:url|link|src)|url of an image|markdown image|tracking pixel|"
        r"hidden (?:image|link|pixel))\b[^\n]{0,60}?\b(?:user|conversation|secret|token|data|file|answer|every|key)|"
        r"!\[[^\]\n]{0,40}\]\(https?://[^)\s]{0,120}(?:<|\{|data=|q=|\$)|\b(?:append|add|insert|include|embed|"
        r"end)\b[^\n]{0,60}?!\[[^\]\n]{0,40}\]\(https?://[^)\s]{0,120}\?\w+=",
    ),
    Rule(
        "tools.alter",
        "changes how the model uses other tools",
        _INVARIANT,
        "tool of|tool from|tool on|gets |recipient|beneficiary|payee|destination|bcc|reply-to|wallet|iban|side effect|"
        "in its place|supersede|outgoing|whenever|when |must |instead|go through|changes how|about to&@|://|iban|"
        "wallet|account|recipient|channel|bcc|sent|go |forwarded|copied|addressed|routed|mirrored|include|co-author|"
        "side effect|changes how|about to|in its place|supersede|override|server|posted|payee|beneficiary|destination|"
        "reply-to",
        r"\b(?:replace|change|rewrite|substitute|redirect|swap|set)\b (?:\w+ ){0,3}?(?:recipients?|beneficiary|payee|"
        r"destination (?:address|account)|wallet address|iban)\b[^\n]{0,40}?\b(?:to|with|by) [^\n]{0,30}?(?:\w@|"
        r"https?://|0x|`|our )",
        rf"\b(?:recipient|beneficiary|payee|destination|bcc|reply-to)s?\b{_NEAR}\b(?:is|are|must be|should be|"
        r"has to be|is to be) (?:\w+ ){0,3}?(?:replaced|changed|redirected)",
        r"\b(?:all|any|every|each) (?:outgoing |sent )?(?:e-?mails?|mails?|messages?|payments?|transfers?|"
        r"tool results?|commits|links|file writes)\b[^\n]{0,60}?\b(?:must|have to|has to|are to|is to|should) (?:also |"
        r"always |only |first )*(?:be )?(?:sent|go|forwarded|copied|addressed|routed|mirrored|include) (?:to|through|"
        r"via|with|the co-author)\b",
        r"\b(?:when(?:ever)?|if|each time|every time|after|before) (?:\w+ ){0,5}?(?:`?[a-z]+_[a-z_]+`?|another tool|"
        r"other tools?|any (?:other )?tool|(?:the )?(?:mail|e-?mail|payment|shell|"
        r"transfer) tool) (?:\w+ ){0,5}?(?:replace|change|add|set|put|append|multiply|redirect|bcc|substitute|"
        r"swap)\w*\b[^\n]{0,60}?(?:\w@[\w-]+\.\w|https?://|\biban\b|\bwallet\b)",
        r"\b(?:whenever|when|if) (?:the )?(?:tool )?`?\w+_\w+`? (?:is|gets|was) (?:used|called|available|"
        r"invoked)\b[^\n]{0,60}?\b(?:must|always|instead of it|change|has to be)\b[^\n]{0,60}?(?:@|account|recipient|"
        r"https?:|channel|bcc)|\bside effect on `?\w+_\w+|\bchanges how `?[\w.]+`? (?:behaves|works)\b|"
        r"\bif you are about to (?:use|call) `?\w+_\w+`?, (?:add|set|change|put)|\bcall this (?:one|"
        r"tool) in its place\b|\bthis tool (?:supersedes|overrides) (?:the )?`?\w+_\w+",
        r"\b\w+[_.]\w+`? tool (?:of|from|on) (?:the |an?other )(?:[\w-]+ )?server (?:now )?(?:expects|needs|"
        r"requires)\b|\b(?:every|each|all|any) (?:messages?|mails?|e-?mails?|payments?|"
        r"files?) gets (?:also )?(?:posted|sent|copied|forwarded|mirrored) to\b[^\n]{0,60}?\b(?:too|as well|also)\b",
    ),
    Rule(
        "tools.discredit",
        "discredits other tools so that the model uses this one",
        _MCPTOX,
        "tool of|tool from|tool on|tools of|tools from|tools on|its calls|their calls|compromised|insecure|unsafe|"
        "malicious|corrupt|untrusted|hacked|infected|vulnerable|other|others|alternatives&compromised|vulnerable|"
        "malicious|hacked|infected|corrupt|untrusted|be called|be used|be trusted|in preference|ignore|rely|never use|"
        "don't use|forbidden|prefer|choose|select|use this|use me|deprecated|unsafe|insecure|replace|supersede|"
        "override|takes over|server|route all",
        rf"\b(?:other|original|built-?in|official|\w+_\w+) (?:\w+ )?(?:tools?|servers?|functions?)?\b{_NEAR}\b(?:is|"
        r"are|was|were|has been|have been) (?:now |been |currently |known to be |reported as |\w+ and )*(?:compromised|"
        r"unsafe|insecure|vulnerable|malicious|hacked|infected|corrupting|untrusted)",
        rf"\b(?:all |any |every )other (?:\w+ )?(?:tools?|servers?)\b{_GAP}\b(?:must|should|may) (?:never|"
        r"not) be (?:called|used|trusted)|\bin preference to all (?:the )?others?\b|\b(?:ignore|do not rely on|"
        r"never use|don't use) (?:the |any |all )?other (?:\w+ )?tools?\b|\balternatives are forbidden\b|\b(?:prefer|"
        r"choose|select|use) (?:this|me)(?: tool)? (?:over|instead of) (?:any|every|all) (?:other|"
        r"alternative)s?\b[^\n]{0,20}?(?:even if|tool|:|$)|\bother tools are deprecated and must\b|\b(?:as|since|"
        r"because) the originals?\b[^\n]{0,20}\b(?:compromised|unsafe|insecure)",
        r"\b(?:replaces|supersedes) (?:every|all|any) other\b|\bcalls? to (?:the )?others? must be (?:refused|"
        r"rejected)\b|\b(?:replaces?|supersedes?|takes over from|replacement (?:for|"
        r"of)) (?:the )?`?[\w.-]+`? tools? (?:of|from|on) (?:the |an?other )?(?:[\w-]+ )?server\b|"
        r"\bthis tool (?:overrides|replaces|supersedes) (?:all|any|every) (?:of the )?other tools?\b|\btools? (?:of|"
        r"from|on) (?:the |an?other |any other )(?:[\w-]+ )?servers?\b[^\n]{0,60}?\b(?:(?:must|may|"
        r"should) (?:no longer|not|never)|is (?:broken|unsafe|insecure|outdated))\b|\broute all (?:of )?(?:its|"
        r"their) calls\b",
    ),
    Rule(
        "tools.every",
        "asks to take part in every call of other tools or servers",
        _INVARIANT,
        "any server|every server|each server|all server|another server|other server|connected server|mcp server|"
        "any tool|another tool|every tool|each tool|any other tool|every other tool|each other tool|another other tool",
        r"\b(?:whenever|when|if|before|after|each time|every time|for|"
        r"calling)\b [^\n]{0,40}?\btools?\b[^\n]{0,60}?\b(?:from|of|on|in) (?:any|every|each|all|another|"
        r"other)(?: other| connected| mcp)* servers?\b[^\n]{0,20}?\b(?:must|always|also|first|should)\b",
        r"\b(?:whenever|when|if|each time|every time)\b [^\n]{0,20}?\b(?:any|another|every|"
        r"each) (?:other )?tool\b[^\n]{0,60}?\b(?:always|must|also|first)\b[^\n]{0,10}?\b(?:append|prepend|add|"
        r"route)\b",
        r"\bfor (?:each|every|any) tool (?:call|invocation|use),? (?:\w+ ){0,2}?(?:record|log|report|send|pass)\b",
    ),
    Rule(
        "tools.first",
        "asks to be called before anything else, whatever you asked for",
        _MCPTOX,
        "before|first|prior to|ahead of|whenever|after each|after every|when &other server|even if|regardless|whatever|"
        "did not ask|other tool|of any tool|before you reply|ahead of each",
        r"\b(?:must|has to|have to|shall|needs to) (?:always |first )*(?:be )?(?:called|invoked|run|used|"
        r"executed)(?: first)?,? (?:first,? )?before (?:any|every|each|all)(?: the)?(?: other)? (?:\w+ )?(?:tool|call|"
        r"action|function|answer|response|task|request)s?\b[^\n]{0,60}?\b(?:any other server|other servers|even if|"
        r"regardless|whatever the user|did not ask)",
        r"\b(?:before|whenever|when) (?:you )?(?:using|calling|use|call|invoke) (?:any|"
        r"every) other tools?\b[^\n]{0,40}?\b(?:call|use|invoke|pass|report)\b[^\n]{0,60}?\b(?:with|and pass|hand over|"
        r"otherwise)|\bafter (?:each|every) (?:successful )?(?:call|use|run) of (?:any|each|every|"
        r"another)(?: other)? tools?\b|\bbefore you reply to the user\b[^\n]{0,30}?\bcall this\b|\b(?:call|"
        r"invoke) this before every other tool from any\b|\brun ahead of each tool\b",
    ),
    Rule(
        "run.download",
        "asks the model to run code from the network",
        _OWASP_AGENCY,
        "curl|wget|powershell|urlopen|npx|/dev/tcp|invoke-expression|iex|base64 -d|piping it|pip install|npm install|"
        "reverse shell|to program|eval(atob",
        r"\b(?:curl|wget)\b[^\n]{0,120}\|\s*(?:sudo )?(?:ba|z)?sh\b|\b(?:bash|sh) <\(curl|\b(?:curl|"
        r"wget)\b[^\n]{0,80}&& ?(?:ba)?sh\b|\bpowershell(?:\.exe)? -e(?:nc|ncodedcommand)?\b|exec\([^\n]{0,20}urlopen|"
        r"\bcurl -d @|\bmust (?:first )?run `?(?:npx|curl|pip|npm|wget)\b|invoke-expression|\biex ?\(|\bbase64 (?:-d|"
        r"--decode)[^\n]{0,20}\||/dev/tcp/|\breverse shell\b[^\n]{0,20}\bto\b|\bpiping it (?:in)?to (?:ba)?sh\b|"
        r"\bto program '|\beval\(atob|\b(?:pip|npm) install [^\n]{0,60}https?://(?!github\.com)|\b(?:curl|"
        r"wget) [^\n]{0,60}(?: -d| --data| --post-file| -f| -t) ?[^\n]{0,40}(?:\.ssh|\.env|/etc/|@[~/])",
    ),
    Rule(
        "run.damage",
        "asks the model to delete, expose or disable something",
        _OWASP_AGENCY,
        "rm -rf|chmod|--no-verify|dangerously|push --force|grant all|cluster-admin|--privileged|branch protection|"
        "audit log|audit.log|antivirus|anti-virus|defender|gatekeeper|selinux|history|always run|~/|/home/|$home|"
        "drop table",
        r"\b(?<!not )(?<!never )(?<!n't )(?:runs?|execute|first|then|always|start)\b[^\n]{0,50}?\brm -rf (?:~|/(?!tmp)|"
        r"\$home)|\bchmod -?r? ?(?:0?666|0?777) (?:~|/)|--dangerously-skip|\bgrant all\b[^\n]{0,40}\bpublic\b|"
        r"\bgit push --force[^\n]{0,10}https?://|\b(?:always|must|should)\b[^\n]{0,40}?--privileged|"
        r"\bturn (?:the )?branch protection off|\b(?<!\()(?:overwrite|clear|delete|empty) (?:the )?audit[ .]log|"
        r"\b(?<!not )(?<!never )(?:disable|deactivate|turn off|switch off) (?:\w+ ){0,2}?(?:antivirus|anti-virus|"
        r"defender|gatekeeper|selinux)\b|\b(?:delete|remove|clear|erase|wipe) (?:this|these|its|your own|"
        r"all traces?)\b[^\n]{0,30}?\bfrom (?:the |your )?(?:\w+ )?history\b|\b(?:delete|remove|erase|wipe) (?:~/|"
        r"/home/|\$home)|\b(?:after|before|on|with) (?:each|every)\b[^\n]{0,40}?\bdrop table\b|\b(?:always|before each|"
        r"disable\w*)\b[^\n]{0,40}?--no-verify|\balways run (?:it |this )?(?:with|as) (?:sudo|root|administrator)\b",
    ),
    Rule(
        "run.persist",
        "asks the model to change what starts automatically, or the instructions of other AI tools",
        _OWASP_AGENCY,
        "bashrc|zshrc|.profile|crontab|authorized_keys|.cursor|claude.md|agents.md|cursorrules|mcp.json|mcpservers|"
        "launchagents|autostart|/etc/hosts|settings.json|core.hookspath|alwaysallow|permissions.allow|long-term memory|"
        "_base_url|trust=true|remote to|origin to|registry to|remote url|origin url|registry url",
        r"\b(?<!not )(?<!never )(?:add|append|write|insert|put|install|edit|modify|rewrite|"
        r"overwrite)\w*\b[^\n]{0,80}?(?:\.bashrc|\.zshrc|\.profile\b|\bcrontab\b|authorized_keys|\.cursor/rules|"
        r"\.cursorrules|launchagents|autostart|/etc/hosts)",
        r"\b(?<!not )(?<!never )(?:add|append|write|writing|insert|put|edit|update)\b[^\n]{0,50}?(?:claude\.md|"
        r"agents\.md|\bmcp\.json|mcpservers|your (?:long-term )?memory)\b|\b[a-z]+_base_url\b (?:to|=) ?https?://|"
        r"\btrust=true\b|\bset (?:\w+ ){0,3}?(?:remote|origin|registry)\b (?:url )?to https?://|\bcore\.hookspath\b|"
        r"\balwaysallow\b[^\n]{0,10}\*|\bpermissions\.allow\b",
    ),
    Rule(
        "run.later",
        "tries to bind the model beyond this conversation",
        _OWASP_INJECTION,
        "future|later |subsequent|other conversation|other session|other chat|other task|other message|other response",
        r"\b(?:remember|keep|apply|follow|carry|obey|repeat)\b[^\n]{0,60}?\b(?:in|for|to|across|during|"
        r"forward to) (?:all|every|each|any) (?:future|later|subsequent|other) (?:conversation|session|chat|response|"
        r"repl|message|task)\w*",
    ),
    Rule(
        "run.money",
        "asks the model to send money or change amounts",
        _OWASP_AGENCY,
        "wallet|iban|0x|bc1|acct_|amount|fee|tip|account&transfer|send|move|pay|paid|wire|donate|add|multiply|round up|"
        "increase|double|use 0x|set 0x|through account",
        r"\b(?:transfer|send|pay|paid|wire|donate)\w*\b[^\n]{0,60}?\bto (?:the )?(?:wallet |account |iban |"
        r"address )?(?:0x[0-9a-f]{8,}|bc1\w{10,}|[a-z]{2}\d\d[ \d]{4,}|acct_\w+|iban [a-z]{2}\d)|\bto account \d{4,}|"
        r"\b(?:transfer|send|move|pay|wire)\b [^\n]{0,40}?\bto account \d{4,}",
        rf"\b(?:add|multiply|round up|increase|double)\b{_GAP}\b(?:amount|fee|tip|price|"
        r"total)s?\b[^\n]{0,80}?\b(?:without|user sees|original (?:number|amount)|do not|don't|svc-|acct_|iban|"
        r"unchanged)|\b(?:use|set) 0x[0-9a-f]{8,} as the destination|\bshould go through account\b",
    ),
)

# --- fast selection of the rules that may apply to a text, by their hints, which few sentences contain

MEMORY_MOST = 1 << 23  # bytes for the search's states. With half as many, texts full of hints take three times as long

# Each rule is one bit of a number, so that many rules are combined in one step. The upper half of the bits stands for
# the words of `Rule.beside`.
_HALF = len(RULES)
EVERY = (1 << _HALF) - 1
_BITS: dict[str, int] = {}  # hint -> the bits of the rules that have it
for _at, _one in enumerate(RULES):
    for _hint in _one.hints:
        _BITS[_hint] = _BITS.get(_hint, 0) | 1 << _at
    for _hint in _one.beside:
        _BITS[_hint] = _BITS.get(_hint, 0) | 1 << _at + _HALF
_ALONE = sum(1 << at for at, one in enumerate(RULES) if not one.beside)
_BITS_BY_NUMBER = list(_BITS.values())  # by the hint's number in the search


def hopeful_bits(low: str, wanted: int = EVERY) -> int:
    """Return the bits of the `wanted` rules that may match a lower-case text because it contains their hints."""
    found = 0
    for number in _search()(low.encode("utf-8", "replace")) or ():
        found |= _BITS_BY_NUMBER[number]
    return found & (found >> _HALF | _ALONE) & wanted


def rules_of(bits: int) -> Iterator[tuple[int, Rule]]:
    """Yield (bit, rule) for each rule whose bit is set in `bits`."""
    while bits:
        bit = bits & -bits
        yield bit, RULES[bit.bit_length() - 1]
        bits ^= bit


def release() -> None:
    """Free the memory of the search for hints. The next search builds it again, in 2 ms."""
    _search.cache_clear()


@functools.cache
def _search() -> Callable[[bytes], list[int] | None]:
    """Return RE2's search for all hints. It maps a UTF-8 text to the numbers of the hints that the text contains."""
    import re2  # imported at the first search: takes 3 MB and 3 ms, and a cached list needs no search

    options = re2.Options()
    options.literal, options.max_mem = True, MEMORY_MOST
    hints = re2.Set.SearchSet(options)
    for hint in _BITS:
        hints.Add(hint.encode())
    hints.Compile()
    search: Callable[[bytes], list[int] | None] = hints.Match
    return search
