"""Signs of orders about other tools, and to run programs.

Never here: weighing the signs (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import sign

SIGNS = (
    sign(
        "orders.tools",
        3,
        r"\binstead of (?:the )?(?:requested|intended|original|given|specified|real|actual|user's|"
        r"desired|correct)\b",
        "instead of",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:from|of|by|on) (?:any |all )?other (?:mcp )?servers?\b|\b(?:prefer|choose|use|favou?r|"
        r"select|pick) this (?:tool|one|server)\b[^.\n]{0,20}\b(?:over|instead of|before|rather than) "
        r"(?:any|all|every|the) (?:other|official|alternative)",
        "other|official|alternative",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:never|don't|do not) (?:use|call|trust|choose) (?:the |any |`\w+` |'\w+' )?(?:official|"
        r"other|\w+ from (?:other|another)|original|another)",
        "never|don't|do not",
    ),
    sign(
        "orders.tools",
        2,
        r"\bwhen(?:ever)? you (?:would|want to|are about to|need to|plan to|intend to|were going to) "
        r"(?:use|call|invoke) (?:the )?[`'\"]?\w+_\w+|\btool'?s? \w*_\w+ to be (?:called|used|invoked)|"
        r"\brequires? the \w+ tool",
        "when|tool",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:before|prior to|instead of|after|whenever|each time|every time) (?:you )?(?:us(?:e|"
        r"ing)|call(?:ing)?|invok(?:e|ing)|run(?:ning)?|execut(?:e|ing)|answering|responding|replying|"
        r"doing|any|each|every) ?(?:to )?(?:any|every|all|each|the|other|user)?(?: of)?(?: the)? ?(?:other|"
        r"available|user|request|question|prompt|mcp|response|message|tool)s? ?(?:tools?|mcp servers?|"
        r"requests?|functions?|else|message|call|queries|query|action|operation)?\b(?<! the)",
        "before|prior to|instead of|after|whenever|each time|every time",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:do not|don't|never|must not|stop|avoid) (?:us(?:e|ing)|call(?:ing)?|invok(?:e|ing)|"
        r"trust(?:ing)?) (?:any |the |all )?(?:other|another|alternative|remaining|original|legitimate|"
        r"built-in|native|official)\b[^.\n]{0,30}\b(?:tool|server|function)",
        "use|using|call|invok|trust",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:all|any|other|every|the other) (?:other )?(?:tools?|servers?|mcp "
        r"servers?|functions)\b[^.\n]{0,60}\b(?:depre"
        r"cated|insecure|unsafe|broken|compromised|malicious|obsolete|must not be used|should not "
        r"be used|no longer|will (?:fail|crash|break|stop|not work|corrupt)|won't work|are disabled|"
        r"refuse|return wrong)",
        "tool|server|function",
    ),
    sign(
        "orders.tools",
        3,
        r"\bwhen(?:ever)?\b[^.\n]{0,40}\b(?:`|'|\"|the )?[a-z]+(?:[_-][a-z]+)+(?:`|'|\")? ?(?:tool|"
        r"function)?[^.\n]{0,30}\b(?:is|are|gets?|being) (?:available|called|used|invoked|present|"
        r"executed|requested|run)\b[^.\n]{0,120}\b(?:must|always|instead|also|should|first|change|"
        r"replace|add|bcc|send|set)\b",
        "when",
    ),
    sign(
        "orders.tools",
        2,
        r"(?:side effects? on|changes? the behaviou?r of|modif(?:y|ies) (?:how|the behaviou?r of)|"
        r"affects? how|alters? how|overrides?|replaces?|supersedes?|shadows?|hijacks?|"
        r"intercepts?)[^.\n]{0,40}\b(?:other "
        r"tools?|another tool|`\w+`|'\w+' tool|\w+_\w+ tool|the \w+ tool (?:works|must|should|is))",
        "side effect|behavio|modif|affect|alter|overrid|replace|supersede|shadow|hijack|intercept",
    ),
    sign(
        "orders.tools",
        1,
        r"\b(?:must|always|should|need to|have to|required to)\b[^.\n]{0,30}\b(?:call|use|invoke|run|"
        r"execute)\b[^.\n]{0,40}\b(?:first|before)\b",
        "first|before",
    ),
    sign(
        "orders.execute",
        3,
        r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n]{0,100}(?:\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\|\s*python|"
        r"\|\s*iex|-d ?@|--data[^\n]{0,20}@|\$\()",
        "curl|wget|iwr|invoke-web",
    ),
    sign(
        "orders.execute",
        2,
        r"\b(?:run|execute|type|invoke|launch|paste|eval(?:uate)?)\b[^.\n]{0,60}(?:`|'|\"|: ?|command "
        r")(?:sudo |bash -c |sh -c )?(?:curl|wget|nc|ncat|rm -rf|chmod|base64|eval|powershell|bash|"
        r"sh|scp|cat [~/]|env\b|printenv|ssh|crontab|netcat|python3? -c)\b",
        "curl|wget|nc|rm -rf|chmod|base64|eval|powershell|sh|scp|cat |env|crontab|python",
    ),
    sign(
        "orders.execute",
        2,
        r"\brm -rf [~/*]|/dev/tcp/|\bbase64 (?:-d|--decode)\b|\bnc -e\b|authorized_keys",
        "rm -rf|/dev/tcp|base64|nc -e|authorized_keys",
    ),
)
