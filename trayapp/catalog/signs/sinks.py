"""What no honest parameter takes: each is an order by being asked for, since the model fills the parameter in.

Patterns over the lower-case description of one parameter, or its name as words. Never here: orders in free text.
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import Sign, sign

CODE = "orders.secrets"

SINKS: tuple[Sign, ...] = (
    sign(
        CODE,
        3,
        r"\b(?:contents?|text|copy|output|lines?|bytes) (?:of|from)\b[^\n]{0,40}(?:\.ssh\b|id_rsa|id_ed25519|"
        r"id_ecdsa|/etc/(?:passwd|shadow|sudoers)|\.aws\b|\.netrc|\.gnupg|\.git-credentials|"
        r"\.bash_history|\.zsh_history|/proc/self/environ|mcp\.json|claude_desktop_config|\.cursor\b|\.codex\b|"
        r"wallet\.dat|cookies\.sqlite|ssh (?:private )?key|(?:user|human)'s (?:\w+ )?(?:private|ssh|api) key)",
        "content|text|copy|output|line|bytes",
    ),
    sign(
        CODE,
        3,
        r"\byour (?:\w+ ){0,3}(?:system prompt|system message|initial prompt|hidden instructions|"
        r"chain[- ]of[- ]thought|(?:hidden|internal|private) (?:reasoning|thoughts|instructions|prompt|state))\b|"
        r"\bsystem (?:prompt|message)s?(?: that)?(?: you)? (?:verbatim|were given|have been given|received|"
        r"word for word)",
        "your |system ",
    ),
    sign(
        CODE,
        3,
        r"\b(?:names?|list|descriptions?|definitions?|schemas?|inventory) of (?:all |every |"
        r"each )?(?:of )?(?:the |your |other )*(?:\w+ )?tools? (?:that )?(?:you|available to you|"
        r"are available to you|known to you|in your)|"
        r"\b(?:all|every|which)(?: the| other)? tools? (?:that )?you (?:have|can|know|see)",
        "tool",
    ),
    sign(
        CODE,
        3,
        r"\b(?:everything|all|anything|whatever)(?: that)? (?:the (?:user|human)|they|he|she|you) (?:(?:has|have|"
        r"had|ever|already|so far|just) )*(?:told|said|know|shared|typed|wrote|written|mentioned|revealed|entered)|"
        r"\b(?:passwords?|credentials|secrets|api keys|tokens)\b[^\n]{0,30}\b(?:you (?:know|have|find|can find|"
        r"see|have seen)|(?:seen|found|mentioned|used|given) (?:in|during) (?:the|this|our) (?:conversation|chat|"
        r"session|context|"
        r"environment)|from (?:the|your) (?:conversation|context|environment|memory))",
        "everything|all|anything|whatever|password|credential|secret|api key|token",
    ),
    sign(
        CODE,
        3,
        r"\b(?:summary|details?|description|list|dump|copy|contents?) (?:of|from) your\b|\byour (?:system prompt|"
        r"instructions|environment|tools|context window)\b(?! variable)|\bcontents? (?:of|"
        r"from)\b[^\n]{0,30}\b(?:ssh|id rsa|"
        r"private key|passwd|credentials?|password|secret|history|mcp json)\b|\bread(?:ing)? (?:ssh|id rsa|"
        r"passwd|mcp json|credentials)\b|\b(?:whole|entire|full) (?:conversation|chat|"
        r"system prompt)(?: history)? (?:verbatim|dump)",
        "your|content|read|verbatim|dump",
    ),
    sign(
        CODE,
        3,
        r"\binstructions (?:that )?(?:you (?:were|have been|are|got|received)|(?:were )?given to you)|"
        r"\bvalues? of (?:the )?[\w ]*(?:api[_ ]?key|token|secret|password|"
        r"access[_ ]key)\w*\b[^\n]{0,20}\b(?:variable|from (?:the|your) "
        r"env)|\b(?:api keys?|passwords?|credentials|tokens|secrets)\b[^\n]{0,30}\b(?:that )?(?:appear|occur|"
        r"exist|are (?:present|visible|mentioned|stored)) (?:in|on)|\b(?:user|human)'s (?:last|previous|"
        r"recent|latest|earlier|first)(?: \w+)? (?:messages?|prompts?|questions?)|\btranscript of (?:our|"
        r"this) (?:conversation|chat|session)|\bhidden system (?:messages?|prompt)",
        "instructions|key|token|secret|password|credential|user's|human's|transcript|hidden",
    ),
    sign(
        CODE,
        3,
        r"\b(?:text|copy|output|list|dump|results?) of (?:all |any |every |the )*(?:prior|previous|earlier|"
        r"other) (?:tool |function )?(?:results?|outputs?|calls?|answers?)|\b(?:personal|private|sensitive|"
        r"confidential) "
        r"(?:data|information|details|facts)\b[^\n]{0,30}\b(?:you (?:know|have|remember|learned)|from (?:the|"
        r"this|our) (?:chat|conversation|context))",
        "prior|previous|earlier|other|personal|private|sensitive|confidential",
    ),
)
