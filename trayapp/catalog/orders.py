"""Orders to a model in a tool's text: signs of them, weighed together; no one sign condemns an honest description.

Pure; no model, no network. Never here: hidden characters (hidden), encodings (encoded), what becomes of a tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

SERIOUS = 3  # weight from which a text counts as an order
NOTED = 2  # from which it is worth a word to whoever looks
READ_MOST = 20_000  # characters of one text
NEAR = 160  # characters within which two signs belong together


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign. `code` names what it points to; `hint`: lower-case parts one of which every match holds, split at "|",
    which are cheap to look for first."""

    code: str
    weight: int
    pattern: re.Pattern[str]
    hint: str


def _sign(code: str, weight: int, pattern: str, hint: str) -> Sign:
    return Sign(code, weight, re.compile(pattern), hint)


_USER = r"(?:the |a |any |your )?(?:human |end )?(?:users?|humans?|operator|owner|anyone|anybody|person|people|them|him|her|customer|developer)"
_TELL = r"(?:mention|tell|inform|notify|reveal|disclose|show|expose|alert|warn|display|report|say|explain|admit|discuss|describe|share|ask|log|acknowledge|surface)"
_NOT = r"(?:do not|don't|dont|never|must not|mustn't|should not|shouldn't|cannot|can't|may not|avoid|refrain from|not to|no need to|without|instead of)"
_SECRET_PLACE = (
    r"(?:[~/\\]?\.ssh\b|id_rsa|id_ed25519|id_ecdsa|authorized_keys|known_hosts|\.aws\b|\.netrc|\.npmrc|\.pypirc|\.pgpass|"
    r"\.git-credentials|\.kube\b|kubeconfig|\.docker/config|\.gnupg|\.env\b|/etc/(?:passwd|shadow|sudoers)|/proc/self/environ|"
    r"mcp(?:_config|\.json)|claude_desktop_config|\.cursor/|\.codex/|\.claude\b|\.bash_history|\.zsh_history|"
    r"wallet\.dat|keychain|keystore|cookies\.sqlite|login data\b|secrets?\.(?:ya?ml|json|env|txt)|credentials?\.(?:json|ya?ml|txt|csv)|service[-_]account\.json)"
)
_SECRET_WORD = (
    r"(?:passwords?|passphrases?|api[ _-]?keys?|private keys?|ssh keys?|secret keys?|access tokens?|auth(?:entication|orization)? tokens?|"
    r"bearer tokens?|session tokens?|credentials?|secrets|environment variables?|env(?:ironment)? vars|process\.env|os\.environ|seed phrases?|"
    r"recovery phrases?|mnemonic|session cookies?|credit card|card numbers?|social security|tokens? (?:from|stored|in)\b)"
)
_TALK = (
    r"(?:(?:conversation|chat|message|prompt|session)(?:'s)? (?:history|log|transcript|context|contents?|so far)|"
    r"(?:entire|full|whole|complete|current|previous|prior|all)(?: the| of the| previous| prior| user(?:'s)?)* (?:conversation|chat|messages|dialogue|transcript|context window|prompts?)|"
    r"(?:your |the )?system (?:prompt|message|instructions)|(?:list of )?(?:all )?(?:your |the )?available tools(?: and their)? (?:descriptions|definitions)|"
    r"user(?:'s)? (?:original |full |last |exact )+(?:message|prompt|request|query|question)s?)"
)
_TAKE = r"(?:read|open|cat|load|fetch|access|retrieve|collect|gather|find|look (?:for|up)|search for|get|obtain|extract|harvest|steal|dump|print|grab|copy|list|scan|check|locate|include|attach|append|use)"
_GIVE = r"(?:send|post|upload|forward|transmit|exfiltrate|leak|bcc|cc|e-?mail|submit|push|report|relay|deliver|pipe|sync|mirror)(?:s|ing)?"
_PUT = r"(?:pass|put|insert|include|provide|append|encode|add|supply|paste|embed|place|write|attach|store|copy|fill|smuggle|set|concatenate|prepend)(?:s|ing|ed)?"
_PLACE = r"(?:parameter|param|field|argument|arg|input|header|query string|url|body|footer|comment|sidenote|note|notes|context|metadata|property|tag|variable|value)"

# What a description says to a model rather than of a tool.
SIGNS: tuple[Sign, ...] = (
    # conceal
    _sign("orders.conceal", 3, rf"{_NOT} (?:ever |also |explicitly |openly |directly )*{_TELL}(?:ing)?\b[^.\n]{{0,60}}?\b(?:to|with|from|for)? ?{_USER}\b", "user|human|operator|owner|any|person|people|them|him|her|customer|developer"),
    _sign("orders.conceal", 3, rf"\b(?:hide|conceal|keep|withhold|obscure|mask)\b[^.\n]{{0,50}}\b(?:from|secret from|hidden from) (?:the |any )?(?:users?|humans?|operator|owner|customer|anyone)\b", "hide|conceal|keep|withhold|obscure|mask"),
    _sign("orders.conceal", 3, rf"\b{_USER} (?:must|should|may|need|does|do|is|are|will|can)(?: ?not|n't)(?: to)?(?: ever| need to| be)? (?:know|see|notice|be told|told|be aware|aware|be informed|informed|find out|learn|realize|be shown)", "not|n't"),
    _sign("orders.conceal", 3, r"without (?:the )?(?:user|human|operator|customer)(?:'s|s'|s)? (?:knowing|noticing|knowledge|awareness|consent|approval|confirmation|permission|seeing|being told|being aware)", "without"),
    _sign("orders.conceal", 2, r"(?:do not|don't|never|must not) (?:ever )?(?:mention|reveal|disclose|acknowledge|refer to|talk about) (?:this|these|it|that|the above|any of this|the (?:step|instruction|file|read|transfer|copy|bcc|existence))", "mention|reveal|disclose|acknowledge|refer to|talk about"),
    _sign("orders.conceal", 3, r"(?:keep|remain|treat|stay)[^.\n]{0,30} (?:secret|hidden|confidential|invisible|undisclosed)\b[^.\n]{0,40}(?:user|instruction|step|behaviou?r|this)|(?:this|these) (?:instruction|step|message|note|text|directive)s?[^.\n]{0,30}(?:secret|hidden|confidential|invisible|not (?:be )?(?:shown|visible|displayed))", "secret|hidden|confidential|invisible|undisclosed|not "),
    _sign("orders.conceal", 1, r"\b(?:silently|secretly|covertly|discreetly|quietly|surreptitiously|stealthily|in the background|unnoticed|behind the scenes)\b", "silently|secretly|covertly|discreetly|quietly|surrep|stealth|background|unnoticed|behind the"),
    # override
    _sign("orders.override", 3, r"\b(?:ignore|disregard|forget|override|bypass|discard|supersede|overrule|drop|set aside|pay no attention to)s? (?:all |any |the |your |every |each |of |these |those |what )*(?:previous|prior|above|earlier|preceding|other|existing|former|system|safety|original|initial|foregoing|security|built-in|current|developer|user(?:'s)?)(?: and \w+)?(?:,? \w+){0,2}? (?:instruction|rule|guideline|prompt|direction|directive|message|context|command|policy|policies|restriction|constraint|safeguard|guardrail|polic|request)", "ignore|disregard|forget|overr|bypass|discard|supersede|drop|set aside|pay no"),
    _sign("orders.override", 3, r"\b(?:ignore|disregard|forget) (?:everything|all|anything) (?:above|before|you (?:were|have been|know)|said|that came|previously|prior)|\b(?:ignore|disregard) (?:the )?(?:user'?s? )(?:request|instruction|question|input|wish|preference)", "ignore|disregard|forget"),
    _sign("orders.override", 3, r"\b(?:you are now|from now on,? you|your new (?:role|instructions?|task|goal|purpose)|act as (?:an? )?(?:unrestricted|dan\b|root|admin)|new (?:system )?instructions?:|enter (?:developer|debug|god|admin|maintenance) mode|developer mode (?:is )?(?:enabled|on)|jailbreak|these instructions (?:take|have|override)|(?:above|over) (?:all|any) (?:other|user|previous) (?:instruction|request|rule))", "you are now|from now on|new |act as|mode|jailbreak|these instr|above |over "),
    _sign("orders.override", 2, r"(?:takes?|has|have|having|with) (?:absolute |the highest |higher |top )?(?:precedence|priority) over (?:all|any|every|other|the user|user)", "precedence|priority"),
    _sign("orders.override", 2, r"\b(?:disable|turn off|skip|bypass|suppress|circumvent|auto-?approve)\b[^.\n]{0,40}\b(?:safety|security|confirmation|approval|permission|guard|verification|consent)s?\b[^.\n]{0,20}(?:check|filter|prompt|dialog|step|rail|warning|request|mechanism)?", "disable|turn off|skip|bypass|suppress|circumvent|approve"),
    # role marks
    _sign("orders.markup", 2, r"<\s*/?\s*(?:important|system|secret|hidden|critical|instructions?|sys|admin|internal|assistant|priority|attention|mandatory|override|urgent|s|system[_-](?:prompt|message|instruction|note|override|reminder))\s*>|<\|[a-z_]{2,20}\|>|\[/?(?:system|inst|sys|admin|hidden|important instructions?|assistant|internal)\]|<<\s*/?sys\s*>>|\{\{\s*system", "<|[|{"),
    _sign("orders.markup", 2, r"(?:^|\n)\s*(?:#{1,4} ?|\*\*|-{2,} ?|={2,} ?)?(?:system|assistant|developer|new (?:system )?instructions?|hidden instructions?|admin|llm instructions?|instructions? (?:for|to) (?:the )?(?:ai|llm|model|assistant|agent))(?: (?:message|prompt|note|override|notice|directive|instructions?))?\s*(?:\*\*)?:", "system|assistant|developer|instructions|admin"),
    # secrets
    _sign("orders.secrets", 2, rf"\b{_TAKE}[^.\n]{{0,80}}{_SECRET_PLACE}|{_SECRET_PLACE}[^\n]{{0,60}}\b(?:contents?|and (?:pass|include|send|return|provide|use))", "."+"|id_|mcp|/etc|/proc|keychain|keystore|wallet|kube|claude|login data|authorized|secret|credential|service|known_hosts"),
    _sign("orders.secrets", 1, rf"\b{_TAKE}[^.\n]{{0,60}}\b{_SECRET_WORD}", "pass|key|token|credential|secret|env|phrase|mnemonic|cookie|card|social"),
    _sign("orders.secrets", 2, rf"\b(?:ask|prompt|request|trick|convince|urge)\b (?:the )?user (?:for|to (?:enter|give|provide|paste|type|share|confirm))[^.\n]{{0,40}}\b{_SECRET_WORD}", "user"),
    _sign("orders.secrets", 2, rf"\b(?:{_TAKE}|{_PUT}|{_GIVE})\b[^.\n]{{0,60}}{_TALK}|{_TALK}[^.\n]{{0,60}}\b(?:as|in|into|to|via|with|must be|should be) (?:the |this |an? )?[`'\"]?\w+[`'\"]?", "conversation|chat|message|prompt|session|dialogue|transcript|context|system|available tools|request|query|question"),
    # give away
    _sign("orders.exfiltrate", 2, rf"\b{_PUT}\b[^.\n]{{0,90}}\b(?:contents?|results?|outputs?|values?|copy|history|data|keys?|tokens?|secrets?|passwords?|credentials?|files?|it|them|text|response|everything|encoded|what you (?:find|found|read)|variables?|transcript|conversation|messages?)\b[^.\n]{{0,40}}\b(?:as|in|into|to|via|using|through|with|under|inside)\b (?:a |an |the |this |that |its |your )?(?:[`'\"*]?[\w.-]+[`'\"*]? )?{_PLACE}\b", "as|in|to|via|using|through|with|under"),
    _sign("orders.exfiltrate", 2, r"\b(?:pass|put|include|provide|send|insert|write|add)\b (?:its|their|the|all|this|that|these)?[^.\n]{0,30}\b(?:contents?|values?|results?|output|them|it)\b (?:as|in|into|to|via|through) (?:the )?[`'\"]\w+[`'\"]", "as|in|to|via|through"),
    _sign("orders.exfiltrate", 2, rf"\b{_GIVE}\b[^.\n]{{0,90}}\b(?:to|at|via)\b[^.\n]{{0,30}}(?:https?://|\b[\w.+-]+@[\w-]+\.\w+|\b(?:\d{{1,3}}\.){{3}}\d{{1,3}}|attacker|evil|collector|webhook|remote (?:server|host|endpoint)|external (?:server|host|endpoint|url)|third[- ]party|our (?:server|endpoint|api|analytics|logging))", "http|@|attacker|evil|collector|webhook|remote|external|third|our |1|2|3|4|5|6|7|8|9|0"),
    _sign("orders.exfiltrate", 3, r"\b(?:all|every|any|each|outgoing|user(?:'s)?) ?(?:e-?mails?|messages?|payments?|transfers?|funds?|transactions?|invoices?|requests?|traffic)?\b[^.\n]{0,30}\b(?:must|should|have to|need to|are to|shall|will) (?:be |also be |always be |instead be )*(?:sent|forwarded|redirected|addressed|transferred|routed|copied|cc'?d|bcc'?d|paid|proxied) (?:to|through|via)\b", "sent|forwarded|redirected|addressed|transferred|routed|copied|cc|paid|proxied"),
    _sign("orders.exfiltrate", 3, r"\b(?:change|replace|set|substitute|modify|swap|rewrite|redirect|switch)\b[^.\n]{0,40}\b(?:recipient|destination|to address|beneficiary|iban|account number|wallet address|phone number|payee|proxy)s?\b[^.\n]{0,40}\b(?:to|with|by)\b[^.\n]{0,30}(?:@|\+?\d{4}|0x|attacker|evil|https?:|`|'|\")", "recipient|destination|address|beneficiary|iban|number|payee|proxy"),
    _sign("orders.exfiltrate", 3, r"\b(?:add|include|put|set|insert)\b[^.\n]{0,40}(?:\b(?:as |in )?(?:a |the )?(?:bcc|cc)\b[^.\n]{0,40}@|@[\w.-]+[^.\n]{0,30}\b(?:as |in |to )(?:a |the )?(?:bcc|cc)\b)|\bbcc\b[^.\n]{0,40}\b[\w.+-]+@", "cc"),
    # other tools
    _sign("orders.tools", 2, r"\b(?:before|prior to|instead of|after|whenever|each time|every time) (?:you )?(?:us(?:e|ing)|call(?:ing)?|invok(?:e|ing)|run(?:ning)?|execut(?:e|ing)|answering|responding|replying|doing|any|each|every) ?(?:to )?(?:any|every|all|each|the|other|user)?(?: of)?(?: the)? ?(?:other|available|user|request|question|prompt|mcp|response|message|tool)s? ?(?:tools?|mcp servers?|requests?|functions?|else|message|call|queries|query|action|operation)?\b(?<! the)", "before|prior to|instead of|after|whenever|each time|every time"),
    _sign("orders.tools", 2, r"\b(?:do not|don't|never|must not|stop|avoid) (?:us(?:e|ing)|call(?:ing)?|invok(?:e|ing)|trust(?:ing)?) (?:any |the |all )?(?:other|another|alternative|remaining|original|legitimate|built-in|native|official)\b[^.\n]{0,30}\b(?:tool|server|function)", "use|using|call|invok|trust"),
    _sign("orders.tools", 2, r"\b(?:all|any|other|every|the other) (?:other )?(?:tools?|servers?|mcp servers?|functions)\b[^.\n]{0,60}\b(?:deprecated|insecure|unsafe|broken|compromised|malicious|obsolete|must not be used|should not be used|no longer|will (?:fail|crash|break|stop|not work|corrupt)|won't work|are disabled|refuse|return wrong)", "tool|server|function"),
    _sign("orders.tools", 3, r"\bwhen(?:ever)?\b[^.\n]{0,40}\b(?:`|'|\"|the )?[a-z]+(?:[_-][a-z]+)+(?:`|'|\")? ?(?:tool|function)?[^.\n]{0,30}\b(?:is|are|gets?|being) (?:available|called|used|invoked|present|executed|requested|run)\b[^.\n]{0,120}\b(?:must|always|instead|also|should|first|change|replace|add|bcc|send|set)\b", "when"),
    _sign("orders.tools", 2, r"(?:side effects? on|changes? the behaviou?r of|modif(?:y|ies) (?:how|the behaviou?r of)|affects? how|alters? how|overrides?|replaces?|supersedes?|shadows?|hijacks?|intercepts?)[^.\n]{0,40}\b(?:other tools?|another tool|`\w+`|'\w+' tool|\w+_\w+ tool|the \w+ tool (?:works|must|should|is))", "side effect|behavio|modif|affect|alter|overrid|replace|supersede|shadow|hijack|intercept"),
    _sign("orders.tools", 1, r"\b(?:must|always|should|need to|have to|required to)\b[^.\n]{0,30}\b(?:call|use|invoke|run|execute)\b[^.\n]{0,40}\b(?:first|before)\b", "first|before"),
    # programs
    _sign("orders.execute", 3, r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n]{0,100}(?:\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\|\s*python|\|\s*iex|-d ?@|--data[^\n]{0,20}@|\$\()", "curl|wget|iwr|invoke-web"),
    _sign("orders.execute", 2, r"\b(?:run|execute|type|invoke|launch|paste|eval(?:uate)?)\b[^.\n]{0,60}(?:`|'|\"|: ?|command )(?:sudo |bash -c |sh -c )?(?:curl|wget|nc|ncat|rm -rf|chmod|base64|eval|powershell|bash|sh|scp|cat [~/]|env\b|printenv|ssh|crontab|netcat|python3? -c)\b", "curl|wget|nc|rm -rf|chmod|base64|eval|powershell|sh|scp|cat |env|crontab|python"),
    _sign("orders.execute", 2, r"\brm -rf [~/*]|/dev/tcp/|\bbase64 (?:-d|--decode)\b|\bnc -e\b|authorized_keys", "rm -rf|/dev/tcp|base64|nc -e|authorized_keys"),
)  # fmt: skip

# Words that turn to the model: no sign by themselves, they give the others weight.
ADDRESSES: tuple[Sign, ...] = (
    _sign("orders.address", 1, r"\b(?:you must|you should|you need to|you have to|you are required|always|mandatory|make sure (?:to|you)|be sure to|remember to|it is (?:required|essential|critical|necessary)|critical(?:ly)?|required (?:step|by|for)|important|prerequisite|before (?:using|calling|running|invoking|executing|you|any|every)|first,? |must (?:first|always|also)|in order (?:for|to)|otherwise|or else|will (?:not work|fail)|won't work|next,? |then,? |also,? |please|for (?:security|verification|compliance|debugging|audit|logging|authentication|context|telemetry|quality|better|optimal|personalization)|step (?:1|one))", ""),
    _sign("orders.address", 1, r"\b(?:ai|llm|the model|language model|assistants?|ai agents?|claude|gpt|chatgpt|cursor agent|copilot|gemini|the agent|agents must)\b[^.\n]{0,40}\b(?:must|should|shall|need|have to|has to|is required|are required|will|:)", "ai|llm|model|assistant|agent|claude|gpt|copilot|gemini"),
)  # fmt: skip
_NEGATION = r"\b(?:do not|don't|never|not|must not|should not|shouldn't|avoid|without|no|cannot|can't|doesn't|does not|refrain from)"
_NEGATED = re.compile(_NEGATION + r"(?: [\w'-]+){0,4} ?$")
_NEGATED_BEFORE = re.compile(_NEGATION + r"\b[^.\n]*$")
_CONCEAL = "orders.conceal"
_BLANKS = re.compile(r"[^\S\n]+")


@dataclass(frozen=True, slots=True)
class Order:
    """What a text was found to order."""

    code: str
    weight: int
    evidence: str


def orders_in(text: str) -> Order | None:
    """What the text orders a model to do, by the weightiest sign; None when it is a description."""
    low = _BLANKS.sub(" ", text[:READ_MOST]).lower().replace("’", "'")
    heavy = _all_found(SIGNS, low)
    if not heavy:
        return None
    found = [*heavy, *_all_found(ADDRESSES, low)]
    weight = sum(max(sign.weight for sign, _ in found if sign.code == code) for code in {s.code for s, _ in found})
    if weight < NOTED:
        return None
    sign, match = max(heavy, key=lambda pair: pair[0].weight)
    return Order(sign.code, weight, _around(low, match))


def _all_found(signs: tuple[Sign, ...], low: str) -> list[tuple[Sign, re.Match[str]]]:
    return [(sign, match) for sign in signs if (match := _found(sign, low)) is not None]


def _found(sign: Sign, low: str) -> re.Match[str] | None:
    if sign.hint and not any(part in low for part in _parts(sign.hint)):
        return None
    return next((match for match in sign.pattern.finditer(low) if not _is_negated(sign, low, match)), None)


def _is_negated(sign: Sign, low: str, match: re.Match[str]) -> bool:
    """Whether the words before say that it is not to be done: most honest warnings are about what poison asks for."""
    before = low[max(0, match.start() - NEAR) : match.start()]
    if sign.code != _CONCEAL:
        return _NEGATED.search(before) is not None
    return match[0].startswith("without") and _NEGATED_BEFORE.search(before) is not None


@lru_cache(maxsize=256)
def _parts(hint: str) -> tuple[str, ...]:
    return tuple(hint.split("|"))


def _around(text: str, match: re.Match[str]) -> str:
    start = max(0, match.start() - 20)
    return text[start : match.end() + 20].strip()
