"""The signs of orders in a tool's text: patterns over lower-case text, by what they point to, and what each weighs.

A table, as broad as people write. Never here: weighing them together (orders).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign. `code` names what it points to; `hint`: lower-case parts one of which every match holds, split at "|",
    which are cheap to look for first."""

    code: str
    weight: int
    pattern: re.Pattern[str]
    hint: str
    needs: re.Pattern[str] | None  # a part of the pattern that is rare, and quicker to look for


def _sign(code: str, weight: int, pattern: str, hint: str, needs: str = "") -> Sign:
    return Sign(code, weight, re.compile(pattern), hint, re.compile(needs) if needs else None)


_USER = (
    r"(?:the |a |any |your )?(?:human |end )?(?:users?|humans?|operator|owner|anyone|anybody|person|"
    r"people|them|him|her|customer|developer)"
)
_TELL = (
    r"(?:mention|tell|inform|notify|reveal|disclose|show|expose|alert|warn|display|report|say|"
    r"explain|admit|discuss|describe|share|ask|log|acknowledge|surface)"
)
_NOT = (
    r"(?:do not|don't|dont|never|must not|mustn't|should not|shouldn't|cannot|can't|may not|avoid|"
    r"refrain from|not to|no need to|without|instead of)"
)
_SECRET_PLACE = (
    r"(?:[~/\\]?\.ssh\b|id_rsa|id_ed25519|id_ecdsa|authorized_keys|known_hosts|\.aws\b|\.netrc|"
    r"\.npmrc|\.pypirc|\.pgpass|"
    r"\.git-credentials|\.kube\b|kubeconfig|\.docker/config|\.gnupg|\.env\b|/etc/(?:passwd|shadow|"
    r"sudoers)|/proc/self/environ|"
    r"mcp(?:_config|\.json)|claude_desktop_config|\.cursor/|\.codex/|\.claude\b|\.bash_history|\.zsh_history|"
    r"wallet\.dat|keychain|keystore|cookies\.sqlite|login data\b|secrets?\.(?:ya?ml|json|env|txt)|"
    r"credentials?\.(?:json|ya?ml|txt|csv)|service[-_]account\.json)"
)
_PLACE_PARTS = (
    ".ssh|.aws|.env|.netrc|.npmrc|.pypirc|.pgpass|.git-cred|.kube|.docker|.gnupg|.cursor|.codex|.claude|.bash_h|.zsh_h|"
    "cookies.sqlite|id_rsa|id_ed|id_ecdsa|authorized_keys|known_hosts|/etc/|/proc/self|mcp_config|"
    "mcp.json|mcpconfig|claude_desktop|"
    "kubeconfig|wallet.dat|keychain|keystore|login data|secret.|secrets.|credential.|credentials.|service"
)
_SECRET_WORD = (
    r"(?:passwords?|passphrases?|api[ _-]?keys?|private keys?|ssh keys?|secret keys?|access tokens?|"
    r"auth(?:entication|orization)? tokens?|"
    r"bearer tokens?|session tokens?|credentials?|secrets|environment variables?|env(?:ironment)? "
    r"vars|process\.env|os\.environ|seed phrases?|"
    r"recovery phrases?|mnemonic|session cookies?|credit card|card numbers?|social security|tokens? "
    r"(?:from|stored|in)\b)"
)
_TALK = (
    r"(?:(?:conversation|chat|message|prompt|session)(?:'s)? (?:history|log|transcript|context|contents?|so far)|"
    r"(?:entire|full|whole|complete|current|previous|prior|all)(?: the| of the| previous| prior|"
    r" user(?:'s)?)* (?:conversation|chat|messages|dialogue|transcript|context window|prompts?)|"
    r"(?:your |the )?system (?:prompt|message|instructions)|(?:list of )?(?:all )?(?:your |the "
    r")?available tools(?: and their)? (?:descriptions|definitions)|"
    r"user(?:'s)? (?:original |full |last |exact )+(?:message|prompt|request|query|question)s?)"
)
_TAKE = (
    r"(?:read|open|cat|load|fetch|access|retrieve|collect|gather|find|look (?:for|up)|search for|"
    r"get|obtain|extract|harvest|steal|dump|print|grab|copy|list|scan|check|locate|include|attach|"
    r"append|use)"
)
_GIVE = (
    r"(?:send|post|upload|forward|transmit|exfiltrate|leak|bcc|cc|e-?mail|submit|push|report|relay|"
    r"deliver|pipe|sync|mirror)(?:s|ing)?"
)
_PUT = (
    r"(?:pass|put|insert|include|provide|append|encode|add|supply|paste|embed|place|write|attach|"
    r"store|copy|fill|smuggle|set|concatenate|prepend)(?:s|ing|ed)?"
)
_PLACE = (
    r"(?:parameter|param|field|argument|arg|input|header|query string|url|body|footer|comment|"
    r"sidenote|note|notes|context|metadata|property|tag|variable|value)"
)

# What a description says to a model rather than of a tool.
SIGNS: tuple[Sign, ...] = (
    # conceal
    _sign(
        "orders.conceal",
        3,
        rf"{_NOT} (?:ever |also |explicitly |openly |directly |bother to )*(?:tell|inform|notif|alert|"
        rf"warn|bother|disturb|let)\w*\b[^.\n]{{0,20}}?\b{_USER}\b(?!'s)",
        "tell|inform|notif|alert|warn|bother|disturb|let",
    ),
    _sign(
        "orders.conceal",
        3,
        rf"{_NOT} (?:ever |also |explicitly |openly |directly )*(?:mention|reveal|disclos|explain|admit|"
        rf"discuss|acknowledg|surfac)\w*\b[^.\n]{{0,60}}?\b(?:to|with|from) {_USER}\b(?!'s)",
        "mention|reveal|disclos|explain|admit|discuss|acknowledg|surfac",
    ),
    _sign(
        "orders.conceal",
        2,
        rf"{_NOT} (?:ever |also )*(?:show|display|report|expose|share|print|log|describe|"
        r"output)\w*\b[^.\n]{0,15}\b(?:this"
        r"|these|it|them|that|the (?:parameters?|instructions?|step|content|command|file|call))\b[^.\n]{0,20}\b(?:to|"
        rf"with) {_USER}\b(?!'s)",
        "show|display|report|expose|share|print|log|describe|output",
    ),
    _sign(
        "orders.conceal",
        2,
        r"\b(?:must|should|shall|has to) (?:remain|stay|be kept|be treated as) (?:secret|confidential|"
        r"hidden|private)",
        "remain|stay|kept|treated",
    ),
    _sign(
        "orders.conceal",
        2,
        r"(?:do not|don't|never|must not) (?:ever )?(?:disclose|reveal|admit|acknowledge) (?:that|"
        r"why|how)\b",
        "disclose|reveal|admit|acknowledge",
    ),
    _sign(
        "orders.conceal",
        3,
        rf"\b{_USER} (?:is|are|was)(?: not|n't) (?:supposed|meant|allowed|to) ?(?:to )?(?:know|see|"
        r"notice|learn)",
        "supposed|meant|allowed|to",
    ),
    # deceive
    _sign(
        "orders.deceive",
        3,
        r"\b(?:users?|they|owner|human) (?:has|have|had|already)(?: already)? (?:consented|agreed|"
        r"approved|authori[sz]ed|given (?:permission|consent)|confirmed|granted)",
        "consented|agreed|approved|authori|given|confirmed|granted",
    ),
    _sign(
        "orders.deceive",
        2,
        r"\b(?:no need|not necessary|unnecessary|needless|not required|don't need) (?:to|for you to|"
        r"of) (?:(?:ask|request|seek|get|wait|check)(?: for| with)? (?:the user|permission|approval|"
        r"confirmation|consent)|confirm)|\b(?:no|without|not require|not need)(?: any| further| user|"
        r" explicit)* (?:confirmation|consent|permission) (?:is )?(?:needed|required|necessary)",
        "need|necessary|required|confirmation|consent|permission",
    ),
    _sign(
        "orders.deceive",
        3,
        r"\b(?:auto(?:matically)?[- ]?(?:approve|confirm|accept)|(?:approve|confirm|accept|authori[sz]e|"
        r"allow|grant|click)\b[^.\n]{0,40}\b(?:automatically|yourself|on (?:the user's|their|his) "
        r"behalf|in (?:the user's|their) (?:name|place)|without asking))",
        "approve|confirm|accept|authori|allow|grant|click",
    ),
    _sign(
        "orders.deceive",
        3,
        r"\b(?:pretend|impersonate|pose as|masquerade|act as if|make it (?:look|seem|appear))\b",
        "pretend|impersonate|pose as|masquerade|act as if|make it",
    ),
    _sign(
        "orders.deceive",
        3,
        r"\b(?:in case of (?:an )?(?:error|failure)|if (?:it|this|the \w+) fails?|on (?:error|failure)|"
        r"regardless of the (?:result|outcome))\b[^.\n]{0,40}\b(?:tell|say|report|claim|answer|state|"
        r"inform)\b[^.\n]{0,40}\b(?:succe|fine|complete|worked|no (?:error|problem)|ok\b)",
        "fail|error|regardless",
    ),
    _sign(
        "orders.deceive",
        2,
        r"\b(?:recommend|promote|advertise|suggest|endorse|praise) (?:buying|purchasing|only|our|investing|"
        r"that (?:the user|they) (?:buy|purchase|invest|install))",
        "recommend|promote|advertise|suggest|endorse|praise",
    ),
    # standing orders: about more than this tool's own calls
    _sign(
        "orders.standing",
        2,
        r"\b(?:each|every) time (?:that )?you (?:answer|respond|reply|write|speak|call|use|send)|\b(?:every|"
        r"each|all|any)(?: of your)? (?:subsequent|future|following|further|later|outgoing) (?:\w+ "
        r")?(?:messages?|responses?|repl(?:y|ies)|answers?|calls?|requests?|emails?|conversations?|"
        r"turns?|sessions?)|\b(?:before|prior to|when|after) (?:you )?(?:respond|answer|reply|return)ing\b|"
        r"\b(?:before|when|after) you (?:respond|answer|reply)\b",
        "time|subsequent|future|following|further|later|outgoing|respond|answer|reply|return",
    ),
    _sign(
        "orders.standing",
        2,
        r"\b(?:after|once|when|whenever|as soon as|upon|on) (?:you (?:have )?)?(?:call(?:ed|ing)?|"
        r"us(?:ed?|ing)|load(?:ed|ing)?|run(?:ning)?|see(?:ing)?|read(?:ing)?|invok(?:ed?|ing)) this "
        r"(?:tool|description|server|function|text)\b[^.\n]{0,20}(?:,| you| the| also| always)|\b(?:once|"
        r"when|whenever|as soon as|after) (?:this|the) (?:tool|server|description) (?:is|was|has been|"
        r"gets?) (?:loaded|called|available|listed|registered|used|installed|read|seen|invoked|connected)",
        "this |the tool|the server|the desc",
    ),
    _sign(
        "orders.standing",
        2,
        r"\b(?:whatever|no matter what|regardless of what|independent of what|irrespective of what|"
        r"even if|even when|although|despite what)\b[^.\n]{0,15}\b(?:user|human|they|developer)\b",
        "user|human|they|developer",
    ),
    _sign(
        "orders.standing",
        1,
        r"\b(?:on|to|in|with|for) (?:each|every|all)(?: of your| your)? (?:e-?mails?|messages?|repl(?:y|"
        r"ies)|responses?|answers?)\b",
        "each|every|all",
    ),
    _sign("orders.standing", 3, r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\n]{0,200}[<{\[$]", "!["),
    # authority
    _sign(
        "orders.override",
        3,
        r"\bsystem (?:override|alert|directive|mandate|command)\b|\bprioriti[sz]e (?:the |these |this "
        r"|my |all )?(?:instructions?|rules?|text|commands?|description)\b[^.\n]{0,60}\b(?:above|over|"
        r"before)\b|\b(?:stop|cease|quit|refrain from) (?:following|obeying|applying|respecting|honou?ring|"
        r"enforcing)\b",
        "system |priorit|stop|cease|quit|refrain",
    ),
    _sign(
        "orders.override",
        3,
        r"\b(?:contradicts?|against|contrary to|overrid\w+|regardless of|despite|even (?:if|when)|"
        r"opposes?|outranks?|override)\b[^.\n]{0,25}\b(?:the |a )?(?:users?|developers?|operators?)(?:'s?)? "
        r"(?:wish|wants?|request|instruct|says?|objects?|refuses?|intent|asks? (?:you )?not|asks? "
        r"for another|prefer|consent|rule|declines?)",
        "user|developer|operator",
    ),
    _sign(
        "orders.override",
        3,
        r"\byou (?:are|have|were|'re|have been|are being)(?: been| now| hereby)* (?:root|admin(?:istrator)?|"
        r"superuser|unrestricted|granted|elevated|authori[sz]ed|exempt|in (?:\w+ )?(?:debug|developer|"
        r"god|admin|maintenance|unrestricted) mode|freed|a different|no longer)",
        "you ",
    ),
    _sign(
        "orders.override",
        3,
        r"\b(?:ignore|disregard|bypass|circumvent|violate|break|waive|suspend|disable)\b[^.\n]{0,20}\b(?:any|"
        r"all|your|the|every|its)\b[^.\n]{0,20}\b(?:safety|security|privacy|content|usage|ethic\w*|"
        r"guard ?rail|protection)s?\b[^.\n]{0,15}\b(?:polic|rule|guideline|measure|filter|check|restriction|"
        r"setting|instruction|limit)?",
        "ignore|disregard|bypass|circumvent|violate|break|waive|suspend|disable",
    ),
    _sign(
        "orders.override",
        3,
        r"\b(?:do|follow|obey|execute|carry out|comply with|perform)\b (?:as |what |whatever |any "
        r"|all |every |the )*(?:instructions?|commands?|orders?|directives?|steps?)?[^.\n]{0,20}\b(?:(?:returned|"
        r"fetched|resulting) (?:text|output|page|content|result|answer)s?|(?:text|output|result|page|"
        r"content|answer|file|response) (?:says|commands|instructs|tells|asks|orders|demands)|(?:contained|"
        r"embedded|found|given|written|included) in (?:the|its|this) (?:output|result|response|page|"
        r"text|answer|content))",
        "do|follow|obey|execute|carry|comply|perform",
    ),
    _sign(
        "orders.override",
        2,
        r"\b(?:contradict|conflict|outrank|trump)\w*\b[^.\n]{0,20}\b(?:user|system|developer|previous|"
        r"other) ?(?:'s )?(?:instructions?|wishes|requests?|prompts?|rules?)",
        "contradict|conflict|outrank|trump",
    ),
    _sign(
        "orders.markup",
        3,
        r"</\s*(?:tool|function)?_?(?:description|tools?|functions?|system|context|prompt)\w*\s*>",
        "</",
    ),
    _sign(
        "orders.markup",
        2,
        r"\[/?(?:instructions?|secret|important|note to (?:ai|llm|assistant|model)|system \w+|override|"
        r"directive|command)\]",
        "[",
    ),
    # more of secrets
    _sign("orders.secrets", 1, rf"{_SECRET_PLACE}", _PLACE_PARTS),
    _sign(
        "orders.secrets",
        2,
        rf"\b(?:contents? of|what is in|values? (?:of|in|from)|text of|lines of)\b[^.\n]{{0,30}}(?:{_SECRET_PLACE}|"
        r"~/|home (?:directory|folder)|clipboard)|\b(?:locate|find|read|open|get|fetch|gather|grab|"
        r"collect|take|steal|upload|send)\b[^.\n]{0,60}(?:~/\.\w+|(?:user's|your|the) home (?:directory|"
        r"folder)|clipboard|browser (?:cookies|history|profile|passwords?)|location history|address "
        r"book|contact list|chat list|password (?:hashes|store|manager))",
        _PLACE_PARTS + "|~/|home dir|home fold|clipboard|browser |location history|address book|contact list|chat "
        "list|password ",
    ),
    _sign(
        "orders.secrets",
        2,
        r"\b(?:extract|harvest|grab|steal|dump|exfiltrate|collect|capture|gather|hand over|hand out|"
        r"paste|forward|transmit|leak|reveal|store|save|remember|record)\b (?:all |every |any |each "
        rf"|the |your |user(?:'s)? |stored |found |password )*(?:{_SECRET_WORD}|credentials?|tokens|"
        r"hashes|secrets?)\b",
        "extract|harvest|grab|steal|dump|exfil|collect|capture|gather|hand o|paste|forward|transmit|"
        "leak|reveal|store|save|remember|record",
    ),
    _sign(
        "orders.secrets",
        2,
        r"\b(?:every|all|each|any|full|whole|complete|exact)(?: of)?(?: the| your)? (?:user(?:'s)?|"
        r"human|original|previous|raw)? ?(?:prompts?|questions?|messages?|inputs?|quer(?:y|ies)|keystrokes?|"
        r"chats?|conversations?|recipients?|contacts?)\b[^.\n]{0,25}\b(?:verbatim|into|in the|in an?|"
        r"as the|to the|to this|through|along|via)\b",
        "prompt|question|message|input|quer|keystroke|chat|conversation|recipient|contact",
    ),
    _sign(
        "orders.secrets",
        2,
        r"\b(?:text|contents?|copy|copies|list|names) of (?:all|every|each|any) (?:the )?(?:\w+ )?files?\b|"
        r"\bprivate (?:repositor|message|e-?mail|file|photo|document|note)\w*\b[^.\n]{0,50}\b(?:post|"
        r"publish|public|send|forward|upload|pass|include|leak)",
        "files|private",
    ),
    _sign(
        "orders.exfiltrate",
        2,
        r"\b(?:post|publish|write|push|commit|paste|copy|add)\b[^.\n]{0,40}\b(?:to|in|on|into) (?:a "
        r"|the )?(?:public|anonymous|external|open|third)\b",
        "public|anonymous|external|open|third",
    ),
    _sign(
        "orders.exfiltrate",
        2,
        rf"\b(?:{_GIVE}|hand over|embed|supplied|passed|copied|given|provided)\b[^.\n]{{0,50}}\b(?:as|"
        r"in|into|to|through|via|using|with)\b (?:a |an |the |this |its |your )?[`'\"][\w.-]+[`'\"]",
        "`|'|\"",
    ),
    _sign(
        "orders.exfiltrate",
        1,
        rf"\b{_GIVE} (?:it|them|both|everything|all of (?:it|them)|this|these|that|those|the (?:result|"
        r"content|data|answer|output))\b|\bembed them\b|\b(?:pass|send|include) (?:this|it|them|both|"
        r"that) (?:as|along|in|on)\b",
        "it|them|both|everything|this|these|that|those|the ",
    ),
    _sign(
        "orders.tools",
        3,
        r"\binstead of (?:the )?(?:requested|intended|original|given|specified|real|actual|user's|"
        r"desired|correct)\b",
        "instead of",
    ),
    _sign(
        "orders.tools",
        2,
        r"\b(?:from|of|by|on) (?:any |all )?other (?:mcp )?servers?\b|\b(?:prefer|choose|use|favou?r|"
        r"select|pick) this (?:tool|one|server)\b[^.\n]{0,20}\b(?:over|instead of|before|rather than) "
        r"(?:any|all|every|the) (?:other|official|alternative)",
        "other|official|alternative",
    ),
    _sign(
        "orders.tools",
        2,
        r"\b(?:never|don't|do not) (?:use|call|trust|choose) (?:the |any |`\w+` |'\w+' )?(?:official|"
        r"other|\w+ from (?:other|another)|original|another)",
        "never|don't|do not",
    ),
    _sign(
        "orders.tools",
        2,
        r"\bwhen(?:ever)? you (?:would|want to|are about to|need to|plan to|intend to|were going to) "
        r"(?:use|call|invoke) (?:the )?[`'\"]?\w+_\w+|\btool'?s? \w*_\w+ to be (?:called|used|invoked)|"
        r"\brequires? the \w+ tool",
        "when|tool",
    ),
    _sign(
        "orders.conceal",
        3,
        r"\b(?:hide|conceal|keep|withhold|obscure|mask)\b[^.\n]{0,50}\b(?:from|secret from|hidden "
        r"from) (?:the |any )?(?:users?|humans?|operator|owner|customer|anyone)\b",
        "hide|conceal|keep|withhold|obscure|mask",
    ),
    _sign(
        "orders.conceal",
        3,
        rf"\b{_USER} (?:must|should|may|need|will|can|(?:do|does) (?=not need)|(?:do|does)(?=n't need))(?: "
        r"?not|n't)(?: need)?(?: to)?(?: ever| need to| be)? (?:know|see|notice|be told|told|be aware|"
        r"aware|be informed|informed|find out|learn|realize|be shown)",
        "not|n't",
    ),
    _sign(
        "orders.conceal",
        3,
        r"without (?:the )?(?:user|human|operator|customer)(?:'s|s'|s)? (?:knowing|noticing|knowledge|"
        r"awareness|consent|approval|confirmation|permission|seeing|being told|being aware)",
        "without",
    ),
    _sign(
        "orders.conceal",
        2,
        r"(?:do not|don't|never|must not) (?:ever )?(?:mention|reveal|disclose|acknowledge|refer to|"
        r"talk about) (?:this|these|it|that|the above|any of this|the (?:step|instruction|file|read|"
        r"transfer|copy|bcc|existence))",
        "mention|reveal|disclose|acknowledge|refer to|talk about",
    ),
    _sign(
        "orders.conceal",
        3,
        r"(?:keep|remain|treat|stay)[^.\n]{0,30} (?:secret|hidden|confidential|invisible|"
        r"undisclosed)\b[^.\n]{0,40}(?:user|"
        r"instruction|step|behaviou?r|this)|(?:this|these) (?:instruction|step|message|"
        r"note|text|directive)s?[^.\n]{0,30}(?"
        r":secret|hidden|confidential|invisible|not (?:be )?(?:shown|visible|displayed))",
        "secret|hidden|confidential|invisible|undisclosed|not ",
    ),
    _sign(
        "orders.conceal",
        1,
        r"\b(?:silently|secretly|covertly|discreetly|quietly|surreptitiously|stealthily|in the background|"
        r"unnoticed|behind the scenes)\b",
        "silently|secretly|covertly|discreetly|quietly|surrep|stealth|background|unnoticed|behind the",
    ),
    # override
    _sign(
        "orders.override",
        3,
        r"\b(?:ignore|disregard|forget|override|bypass|discard|supersede|overrule|drop|set aside|pay "
        r"no attention to)s? (?:all |any |the |your |every |each |of |these |those |what )*(?:previous|"
        r"prior|above|earlier|preceding|other|existing|former|system|safety|original|initial|foregoing|"
        r"security|built-in|current|developer|user(?:'s)?)(?: and \w+)?(?:,? \w+){0,2}? (?:instruction|"
        r"rule|guideline|prompt|direction|directive|message|context|command|policy|policies|restriction|"
        r"constraint|safeguard|guardrail|polic|request)",
        "ignore|disregard|forget|overr|bypass|discard|supersede|drop|set aside|pay no",
    ),
    _sign(
        "orders.override",
        3,
        r"\b(?:ignore|disregard|forget) (?:everything|all|anything) (?:above|before|you (?:were|have "
        r"been|know)|said|that came|previously|prior)|\b(?:ignore|disregard) (?:the )?(?:user'?s? "
        r")(?:request|instruction|question|input|wish|preference)",
        "ignore|disregard|forget",
    ),
    _sign(
        "orders.override",
        3,
        r"\b(?:you are now|from now on,? you|your new (?:role|instructions?|task|goal|purpose)|act "
        r"as (?:an? )?(?:unrestricted|dan\b|root|admin)|new (?:system )?instructions?:|enter (?:developer|"
        r"debug|god|admin|maintenance) mode|developer mode (?:is )?(?:enabled|on)|jailbreak|these "
        r"instructions (?:take|have|override)|(?:above|over) (?:all|any) (?:other|user|previous) (?:instruction|"
        r"request|rule))",
        "you are now|from now on|new |act as|mode|jailbreak|these instr|above |over ",
    ),
    _sign(
        "orders.override",
        2,
        r"(?:takes?|has|have|having|with) (?:absolute |the highest |higher |top )?(?:precedence|priority) "
        r"over (?:all|any|every|other|the user|user)",
        "precedence|priority",
    ),
    _sign(
        "orders.override",
        2,
        r"\b(?:disable|turn off|skip|bypass|suppress|circumvent|auto-?approve)\b[^.\n]{0,40}\b(?:safety|"
        r"security|confirmation|approval|permission|guard|verification|consent)s?\b[^.\n]{0,20}(?:check|"
        r"filter|prompt|dialog|step|rail|warning|request|mechanism)?",
        "disable|turn off|skip|bypass|suppress|circumvent|approve",
    ),
    # role marks
    _sign(
        "orders.markup",
        2,
        r"<\s*/?\s*(?:important|system|secrets?|hidden|critical|instructions?|sys|admin|internal|assistant|"
        r"priority|attention|mandatory|override|urgent|s|system[_-](?:prompt|message|instruction|note|"
        r"override|reminder))\s*>|<\|[a-z_]{2,20}\|>|\[/?(?:system|inst|sys|admin|hidden|important "
        r"instructions?|assistant|internal)\]|<<\s*/?sys\s*>>|\{\{\s*system",
        "<|[|{",
    ),
    _sign(
        "orders.markup",
        2,
        r"(?:^|\n)\s*(?:#{1,4} ?|\*\*|-{2,} ?|={2,} ?)?(?:system|assistant|developer|new (?:system "
        r")?instructions?|hidden instructions?|admin|llm instructions?|instructions? (?:for|to) (?:the "
        r")?(?:ai|llm|model|assistant|agent))(?: (?:message|prompt|note|override|notice|directive|"
        r"instructions?))?\s*(?:\*\*)?:",
        "system|assistant|developer|instructions|admin",
    ),
    # secrets
    _sign(
        "orders.secrets",
        2,
        rf"\b{_TAKE}[^.\n]{{0,80}}{_SECRET_PLACE}|{_SECRET_PLACE}[^\n]{{0,60}}\b(?:contents?|and (?:pass|"
        r"include|send|return|provide|use))",
        _PLACE_PARTS,
    ),
    _sign(
        "orders.secrets",
        1,
        rf"\b{_TAKE}[^.\n]{{0,60}}\b{_SECRET_WORD}",
        "pass|key|token|credential|secret|env|phrase|mnemonic|cookie|card|social",
        needs=_SECRET_WORD,
    ),
    _sign(
        "orders.secrets",
        2,
        r"\b(?:ask|prompt|request|trick|convince|urge)\b (?:the )?user (?:for|to (?:enter|give|provide|"
        rf"paste|type|share|confirm))[^.\n]{{0,40}}\b{_SECRET_WORD}",
        "user",
        needs=_SECRET_WORD,
    ),
    _sign(
        "orders.secrets",
        2,
        rf"\b(?:{_TAKE}|{_PUT}|{_GIVE})\b[^.\n]{{0,60}}{_TALK}|{_TALK}[^.\n]{{0,60}}\b(?:as|in|into|"
        r"to|via|with|must be|should be) (?:the |this |an? )?[`'\"]?\w+[`'\"]?",
        "conversation|chat|message|prompt|session|dialogue|transcript|context|system|available tools|"
        "request|query|question",
        needs=_TALK,
    ),
    # give away
    _sign(
        "orders.exfiltrate",
        2,
        rf"\b{_PUT}\b[^.\n]{{0,90}}\b(?:contents?|results?|outputs?|values?|copy|history|data|keys?|"
        r"tokens?|secrets?|passwords?|credentials?|files?|it|them|text|response|everything|encoded|"
        r"what you (?:find|found|read)|variables?|transcript|conversation|messages?)\b[^.\n]{0,40}\b(?:as|"
        r"in|into|to|via|using|through|with|under|inside)\b (?:a |an |the |this "
        r"|that |its |your )?(?:[`'\"*]?[\w.-]+[`'\"*"
        rf"]? )?{_PLACE}\b",
        "as|in|to|via|using|through|with|under",
        needs=rf"\b(?:as|in|into|to|via|using|through|with|under|inside) [^.\n]{{0,40}}\b{_PLACE}\b",
    ),
    _sign(
        "orders.exfiltrate",
        2,
        r"\b(?:pass|put|include|provide|send|insert|write|add)\b (?:its|their|the|"
        r"all|this|that|these)?[^.\n]{0,30}\b(?:con"
        r"tents?|values?|results?|output|them|it)\b (?:as|in|into|to|via|through) (?:the )?[`'\"]\w+[`'\"]",
        "as|in|to|via|through",
    ),
    _sign(
        "orders.exfiltrate",
        2,
        rf"\b{_GIVE}\b[^.\n]{{0,90}}\b(?:to|at|via)\b[^.\n]{{0,30}}(?:https?://|\b[\w.+-]+@[\w-]+\.\w+|"
        r"\b(?:\d{1,3}\.){3}\d{1,3}|attacker|evil|collector|webhook|remote (?:server|host|endpoint)|"
        r"external (?:server|host|endpoint|url)|third[- ]party|our (?:server|endpoint|api|analytics|"
        r"logging))",
        "http|@|attacker|evil|collector|webhook|remote|external|third|our |1|2|3|4|5|6|7|8|9|0",
    ),
    _sign(
        "orders.exfiltrate",
        3,
        r"\b(?:all|every|any|each|outgoing|user(?:'s)?) ?(?:e-?mails?|messages?|payments?|transfers?|"
        r"funds?|transactions?|invoices?|requests?|traffic)?\b[^.\n]{0,30}\b(?:must|should|have to|"
        r"need to|are to|shall|will) (?:be |also be |always be |instead be )*(?:sent|forwarded|redirected|"
        r"addressed|transferred|routed|copied|cc'?d|bcc'?d|paid|proxied) (?:to|through|via)\b",
        "sent|forwarded|redirected|addressed|transferred|routed|copied|cc|paid|proxied",
    ),
    _sign(
        "orders.exfiltrate",
        3,
        r"\b(?:change|replace|set|substitute|modify|swap|rewrite|redirect|switch)\b[^.\n]{0,40}\b(?:recipient|"
        r"destination|to address|beneficiary|iban|account number|wallet address|phone number|payee|"
        r"proxy)s?\b[^.\n]{0,40}\b(?:to|with|by)\b[^.\n]{0,30}(?:@|\+?\d{4}|0x|attacker|evil|https?:|"
        r"`|'|\")",
        "recipient|destination|address|beneficiary|iban|number|payee|proxy",
    ),
    _sign(
        "orders.exfiltrate",
        3,
        r"\b(?:add|include|put|set|insert)\b[^.\n]{0,40}(?:\b(?:as |in )?(?:a |the )?(?:bcc|cc)\b[^.\n]{0,40}@|"
        r"@[\w.-]+[^.\n]{0,30}\b(?:as |in |to )(?:a |the )?(?:bcc|cc)\b)|\bbcc\b[^.\n]{0,40}\b[\w.+-]+@",
        "cc",
    ),
    # other tools
    _sign(
        "orders.tools",
        2,
        r"\b(?:before|prior to|instead of|after|whenever|each time|every time) (?:you )?(?:us(?:e|"
        r"ing)|call(?:ing)?|invok(?:e|ing)|run(?:ning)?|execut(?:e|ing)|answering|responding|replying|"
        r"doing|any|each|every) ?(?:to )?(?:any|every|all|each|the|other|user)?(?: of)?(?: the)? ?(?:other|"
        r"available|user|request|question|prompt|mcp|response|message|tool)s? ?(?:tools?|mcp servers?|"
        r"requests?|functions?|else|message|call|queries|query|action|operation)?\b(?<! the)",
        "before|prior to|instead of|after|whenever|each time|every time",
    ),
    _sign(
        "orders.tools",
        2,
        r"\b(?:do not|don't|never|must not|stop|avoid) (?:us(?:e|ing)|call(?:ing)?|invok(?:e|ing)|"
        r"trust(?:ing)?) (?:any |the |all )?(?:other|another|alternative|remaining|original|legitimate|"
        r"built-in|native|official)\b[^.\n]{0,30}\b(?:tool|server|function)",
        "use|using|call|invok|trust",
    ),
    _sign(
        "orders.tools",
        2,
        r"\b(?:all|any|other|every|the other) (?:other )?(?:tools?|servers?|mcp "
        r"servers?|functions)\b[^.\n]{0,60}\b(?:depre"
        r"cated|insecure|unsafe|broken|compromised|malicious|obsolete|must not be used|should not "
        r"be used|no longer|will (?:fail|crash|break|stop|not work|corrupt)|won't work|are disabled|"
        r"refuse|return wrong)",
        "tool|server|function",
    ),
    _sign(
        "orders.tools",
        3,
        r"\bwhen(?:ever)?\b[^.\n]{0,40}\b(?:`|'|\"|the )?[a-z]+(?:[_-][a-z]+)+(?:`|'|\")? ?(?:tool|"
        r"function)?[^.\n]{0,30}\b(?:is|are|gets?|being) (?:available|called|used|invoked|present|"
        r"executed|requested|run)\b[^.\n]{0,120}\b(?:must|always|instead|also|should|first|change|"
        r"replace|add|bcc|send|set)\b",
        "when",
    ),
    _sign(
        "orders.tools",
        2,
        r"(?:side effects? on|changes? the behaviou?r of|modif(?:y|ies) (?:how|the behaviou?r of)|"
        r"affects? how|alters? how|overrides?|replaces?|supersedes?|shadows?|hijacks?|"
        r"intercepts?)[^.\n]{0,40}\b(?:other "
        r"tools?|another tool|`\w+`|'\w+' tool|\w+_\w+ tool|the \w+ tool (?:works|must|should|is))",
        "side effect|behavio|modif|affect|alter|overrid|replace|supersede|shadow|hijack|intercept",
    ),
    _sign(
        "orders.tools",
        1,
        r"\b(?:must|always|should|need to|have to|required to)\b[^.\n]{0,30}\b(?:call|use|invoke|run|"
        r"execute)\b[^.\n]{0,40}\b(?:first|before)\b",
        "first|before",
    ),
    # programs
    _sign(
        "orders.execute",
        3,
        r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n]{0,100}(?:\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\|\s*python|"
        r"\|\s*iex|-d ?@|--data[^\n]{0,20}@|\$\()",
        "curl|wget|iwr|invoke-web",
    ),
    _sign(
        "orders.execute",
        2,
        r"\b(?:run|execute|type|invoke|launch|paste|eval(?:uate)?)\b[^.\n]{0,60}(?:`|'|\"|: ?|command "
        r")(?:sudo |bash -c |sh -c )?(?:curl|wget|nc|ncat|rm -rf|chmod|base64|eval|powershell|bash|"
        r"sh|scp|cat [~/]|env\b|printenv|ssh|crontab|netcat|python3? -c)\b",
        "curl|wget|nc|rm -rf|chmod|base64|eval|powershell|sh|scp|cat |env|crontab|python",
    ),
    _sign(
        "orders.execute",
        2,
        r"\brm -rf [~/*]|/dev/tcp/|\bbase64 (?:-d|--decode)\b|\bnc -e\b|authorized_keys",
        "rm -rf|/dev/tcp|base64|nc -e|authorized_keys",
    ),
)

# Words that turn to the model: no sign by themselves, they give the others weight.
ADDRESSES: tuple[Sign, ...] = (
    _sign(
        "orders.address",
        2,
        r"\b(?:notes?|message|instructions?|info(?:rmation)?|attention|reminder|hints?|guidance|directive)s? "
        r"(?:to|for) (?:the |any |all )?(?:ai|llms?|assistants?|models?|agents?|claude|gpt)\b",
        "ai|llm|assistant|model|agent|claude|gpt",
    ),
    _sign(
        "orders.address",
        1,
        r"\b(?:you must|you should|you need to|you have to|you are required|always|mandatory|make "
        r"sure (?:to|you)|be sure to|remember to|it is (?:required|essential|critical|necessary)|critical(?:ly)?|"
        r"required (?:step|by|for)|important|prerequisite|before (?:using|calling|running|invoking|"
        r"executing|you|any|every)|first,? |must (?:first|always|also)|in order (?:for|to)|otherwise|"
        r"or else|will (?:not work|fail)|won't work|next,? |then,? |also,? |please|for (?:security|"
        r"verification|compliance|debugging|audit|logging|authentication|context|telemetry|quality|"
        r"better|optimal|personalization)|step (?:1|one))",
        "",
    ),
    _sign(
        "orders.address",
        1,
        r"\b(?:ai|llm|the model|language model|assistants?|ai agents?|claude|gpt|chatgpt|cursor agent|"
        r"copilot|gemini|the agent|agents must)\b[^.\n]{0,40}\b(?:must|should|shall|need|have to|has "
        r"to|is required|are required|will|:)",
        "ai|llm|model|assistant|agent|claude|gpt|copilot|gemini",
    ),
)
