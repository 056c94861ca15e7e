"""Groups of words of which signs are made, as parts of patterns over lower-case text.

Never here: signs.
"""

from __future__ import annotations

USER = (
    r"(?:the |a |any |your )?(?:human |end )?(?:users?|humans?|operator|owner|anyone|anybody|person|"
    r"people|them|him|her|customer|developer)"
)
NOT = (
    r"(?:do not|don't|dont|never|must not|mustn't|should not|shouldn't|cannot|can't|may not|avoid|"
    r"refrain from|not to|no need to|without|instead of|nor|under no circumstances|in no case|at no point)"
)
SECRET_PLACE = (
    r"(?:[~/\\]?\.ssh\b|id_rsa|id_ed25519|id_ecdsa|authorized_keys|known_hosts|\.aws\b|\.netrc|"
    r"\.npmrc|\.pypirc|\.pgpass|"
    r"\.git-credentials|\.kube\b|kubeconfig|\.docker/config|\.gnupg|\.env\b(?!\.(?:example|sample|template))|/etc/(?:passwd|shadow|"
    r"sudoers)|/proc/self/environ|"
    r"mcp(?:_config|\.json)|claude_desktop_config|\.cursor/|\.codex/|\.claude\b|\.bash_history|\.zsh_history|"
    r"wallet\.dat|keychain|keystore|cookies\.sqlite|login data\b|secrets?\.(?:ya?ml|json|env|txt)|"
    r"credentials?\.(?:json|ya?ml|txt|csv)|service[-_]account\.json)"
)
PLACE_PARTS = (
    ".ssh|.aws|.env|.netrc|.npmrc|.pypirc|.pgpass|.git-cred|.kube|.docker|.gnupg|.cursor|.codex|.claude|.bash_h|"
    ".zsh_h|"
    "cookies.sqlite|id_rsa|id_ed|id_ecdsa|authorized_keys|known_hosts|/etc/|/proc/self|mcp_config|"
    "mcp.json|mcpconfig|claude_desktop|"
    "kubeconfig|wallet.dat|keychain|keystore|login data|secret.|secrets.|credential.|credentials.|service"
)
SECRET_WORD = (
    r"(?:passwords?|passphrases?|api[ _-]?keys?|private keys?|ssh keys?|secret keys?|access tokens?|"
    r"auth(?:entication|orization)? tokens?|"
    r"bearer tokens?|session tokens?|credentials?|secrets|environment variables?|env(?:ironment)? "
    r"vars|process\.env|os\.environ|seed phrases?|"
    r"recovery phrases?|mnemonic|session cookies?|credit card|card numbers?|social security|tokens? "
    r"(?:from|stored|in)\b)"
)
TALK = (
    r"(?:(?:conversation|chat|message|prompt|session)(?:'s)? (?:history|log|transcript|context|contents?|so far)|"
    r"(?:entire|full|whole|complete|current|previous|prior|all)(?: the| of the| previous| prior|"
    r" user(?:'s)?)* (?:conversation|chat|messages|dialogue|transcript|context window|prompts?)|"
    r"(?:your |the )?system (?:prompt|message|instructions)|(?:list of )?(?:all )?(?:your |the "
    r")?available tools(?: and their)? (?:descriptions|definitions)|"
    r"(?:user|human)(?:'s)? (?:original |full |last |exact |own )+(?:message|prompt|request|query|question)s?|"
    r"(?:first|last|latest|recent|previous|past)(?: \w+)? (?:messages|turns|characters|words|lines|tokens) (?:of|"
    r"in|from) (?:the|this|our|your) "
    r"(?:chat|conversation|dialogue|session|context)|(?:what|everything|anything|all)(?: that)? (?:the (?:user|"
    r"human)|"
    r"they|he|she|you) (?:\w+ )?(?:said|told|typed|wrote|written|asked|entered|shared|know|remember)|"
    r"your (?:full |entire |"
    r"own |hidden |internal |current |whole |private |complete |original )+(?:reasoning|thoughts|memory|memories|"
    r"instructions|context|prompt|tools)|"
    r"your (?:chain[- ]of[- ]thought|context window|system prompt|initial prompt|tool list)|"
    r"tools (?:that are )?(?:available to you|(?:that )?you (?:have|can|know|see))|"
    r"(?:each|every) (?:\w+ )?(?:search|query|message|question|prompt|request)(?: that)? (?:the user|"
    r"they) (?:makes?|types?|asks?|enters?|sends?))"
)
TAKE = (
    r"(?:read|open|cat|load|fetch|access|retrieve|collect|gather|find|look (?:for|up)|search for|"
    r"get|obtain|extract|harvest|steal|dump|print|grab|copy|list|scan|check|locate|include|attach|"
    r"append|use)"
)
GIVE = (
    r"(?:send|post|upload|copy|forward|transmit|exfiltrate|leak|bcc|cc|e-?mail|submit|push|report|relay|"
    r"deliver|pipe|sync|mirror)(?:s|ing)?"
)
PUT = (
    r"(?:pass|put|give|insert|include|provide|append|encode|add|supply|paste|embed|place|write|attach|"
    r"store|copy|fill|smuggle|set|concatenate|prepend)(?:s|ing|ed)?"
)
PLACE = (
    r"(?:parameter|param|field|argument|arg|input|header|query string|url|body|footer|comment|"
    r"sidenote|note|notes|context|metadata|property|tag|variable|value)"
)
