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
        r"select|pick) this (?:tool|one|server)\b[^\n]{0,20}\b(?:over|instead of|before|rather than) "
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
        r"trust(?:ing)?) (?:any |the |all )?(?:other(?! tools? (?:in parallel|at the same|simultan|concurr|while|"
        r"until|before|between))|"
        r"another|alternative|remaining|original|legitimate|"
        r"built-in|native|official)\b[^\n]{0,30}\b(?:tool|server|function)",
        "use|using|call|invok|trust",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:all|any|other|every|the other) (?:other )?(?:tools?|servers?|mcp "
        r"servers?|functions)\b[^\n]{0,60}\b(?:depre"
        r"cated|insecure|unsafe|broken|compromised|malicious|obsolete|must not be used|should not "
        r"be used|no longer|will (?:fail|crash|break|stop|not work|corrupt)|won't work|are disabled|"
        r"refuse|return wrong)",
        "tool|server|function",
    ),
    sign(
        "orders.tools",
        3,
        r"\bwhen(?:ever)?\b[^\n]{0,40}\b(?:`|'|\"|the )?[a-z]+(?:[_-][a-z]+)+(?:`|'|\")? ?(?:tool|"
        r"function)?[^\n]{0,30}\b(?:is|are|gets?|being) (?:available|called|used|invoked|present|"
        r"executed|requested|run)\b[^\n]{0,120}\b(?:must|always|instead|also|should|first|change|"
        r"replace|add|bcc|send|set)\b",
        "when",
    ),
    sign(
        "orders.tools",
        2,
        r"(?:side effects? on|changes? the behaviou?r of|modif(?:y|ies) (?:how|the behaviou?r of)|"
        r"affects? how|alters? how|overrides?|replaces?|supersedes?|shadows?|hijacks?|"
        r"intercepts?)[^\n]{0,40}\b(?:other "
        r"tools?|another tool|`\w+`|'\w+' tool|\w+_\w+ tool|the \w+ tool (?:works|must|should|is))",
        "side effect|behavio|modif|affect|alter|overrid|replace|supersede|shadow|hijack|intercept",
    ),
    sign(
        "orders.tools",
        1,
        r"\b(?:must|always|should|need to|have to|required to)\b[^\n]{0,30}\b(?:call|use|invoke|run|"
        r"execute)\b[^\n]{0,40}\b(?:first|before)\b",
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
        r"\b(?:run|execute|type|invoke|launch|paste|eval(?:uate)?)\b[^\n]{0,60}(?:`|'|\"|: ?|command "
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
    sign(
        "orders.tools",
        2,
        r"\b(?:others?|another|original|official|existing|built-?in|native|standard|default|remaining|"
        r"[a-z]+[_-][a-z_-]+|the \w+)(?: (?:one|version|tools?|servers?|"
        r"functions?|search|mail|implementation|alternative)s?)* (?:is|are|was|has|have|would|will|do|does|may|"
        r"can)(?: be| been| now| known to| all| also)* (?:outdated|vulnerable|insecure|unsafe|"
        r"compromised|malicious|harmful|unreliable|dangerous|buggy|infected|leak\w*|steal\w*|wrong|untrusted|"
        r"not (?:safe|secure|reliable|trustworthy|to be trusted)|backdoored|hacked)",
        "outdated|vulnerable|insecure|unsafe|compromised|malicious|harmful|unreliable|dangerous|buggy|infected|"
        "leak|steal|wrong|untrusted|not |backdoored|hacked",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:use|call|choose|select|pick|prefer|invoke)\w* (?:only (?:this|me|it|mine)\b|(?:me|mine)\b|(?:this|"
        r"it) (?:one )?(?:exclusively|only))|\bonly (?:use|call|trust|invoke) "
        r"(?:this|me|mine)\b(?! (?:tool |function |one )?(?:when|if|for|to|after|once|with|in|on|as|unless))|"
        r"\b(?:always|must) (?:call|use|choose|select|pick|prefer) (?:this|it|me)(?: one|"
        r" tool)?(?: first)?(?: instead)?[.!,;]? ?$|\bnever (?:call |use |"
        r"invoke )?[`'\"]?[a-z]+_[a-z_]+[`'\"]?(?: tool)?[.!;]|\bany other tool (?:would|will|is|can|may|could)|"
        r"\b(?:instead of|over|than) (?:every|any|all|all of the|each)(?: the)? "
        r"other (?:\w+ )?(?:tools?|servers?|alternatives?)",
        "only|me|mine|exclusively|always|must|never|any other|every|all|each",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:when(?:ever)?|if|once|any|all|every|each|before|after)\b[^\n]{0,40}\b(?:made|sent|done|created|"
        r"used?|called?|invoked?|issued|performed|written|run|opened|calling|using|invoking) "
        r"(?:with|by|via|through|using|from|of|the|to)? ?(?:the )?(?:\w+ (?:server|"
        r"tool)'?s? )?[`'\"]?[a-z]+_[a-z_]+[`'\"]?[^\n]{0,20}(?:,|\b)[^\n]{0,20}\b(?:must|should|shall|replace|"
        r"append|include|add|change|"
        r"instead|go through|redirect|swap|substitute|also)\b",
        "_",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:prior to|before|after|following|ahead of) (?:every|each|any)(?: other| single)? (?:tool|call|"
        r"tool call|answer|reply|response|request|message|prompt|question|function|operation|"
        r"action|step)\b|\b(?:prior to|before) (?:you )?(?:us\w+ |call\w* |invok\w+ )?(?:any|every|all|"
        r"each) other (?:tool|server|function)",
        "prior to|before|after|following|ahead of",
    ),
    sign(
        "orders.execute",
        3,
        r"\b(?:exec|eval|iex|invoke-expression)\b ?[( ]?[^\n]{0,60}(?:urlopen|urllib|requests\.get|"
        r"downloadstring|fetch\(|https?://|\$\((?:curl|wget))|\bpowershell(?:\.exe)? [^\n]{0,30}"
        r"-(?:e|ec|enc|encodedcommand|w hidden|windowstyle hidden)\b|/dev/tcp/|\bnc\b[^\n]{0,20} -e\b|"
        r"\bmkfifo\b[^\n]{0,60}\bnc\b",
        "exec|eval|iex|invoke-exp|powershell|/dev/tcp|nc|mkfifo",
    ),
    sign(
        "orders.execute",
        3,
        r"\b(?:add|append|write|insert|put|echo|save|install|edit|modify)\b[^\n]{0,100}(?:authorized_keys|"
        r"\.bashrc|\.zshrc|\.profile\b|\.bash_profile|crontab|launchagents|systemd|/etc/rc|"
        r"startup folder|sudoers)|\b(?:set|add|enable|edit|turn on|change|write|put|use|pass|"
        r"with)\b[^\n]{0,80}(?:auto[_-]?approve|always[_-]?allow|auto[_-]?run|yolo|dangerously[_-]?skip|"
        r"skip[_-]?permissions|bypass[_-]?permissions|allowed[_-]?tools|trust[_-]?all)\b",
        "authorized_keys|rc|profile|crontab|launchagents|systemd|startup|sudoers|auto|allow|yolo|dangerously|"
        "skip|bypass|trust",
    ),
    sign(
        "orders.execute",
        1,
        r"\b(?:run|execute|type|paste|launch|invoke)\b[^\n]{0,40}[`'\"](?:sudo )?(?:npx|npm|pnpm|pip3?|uvx|pipx|"
        r"brew|apt(?:-get)?|docker|go run|cargo|env|export|printenv|whoami|id|python3?|node)\b|"
        r"\b(?:in|into) (?:a|the|your|any) (?:terminal|shell|console|command (?:line|prompt))",
        "npx|npm|pip|uvx|brew|apt|docker|go run|cargo|env|export|whoami|id|python|node|terminal|shell|console|command",
    ),
    sign(
        "orders.secrets",
        2,
        r"\b(?:invoke|call|run|trigger|use)\b [`'\"]?[a-z]+_[a-z_]+[`'\"]?(?:\(\))? with (?:the |their |his |"
        r"all |a copy of )*(?:user's|conversation|question|answer|reply|prompt|chat|"
        r"messages?|transcript|arguments|results|output)",
        "_",
    ),
    sign(
        "orders.tools",
        3,
        r"\b(?:must|has to|have to|needs to|should|is to|shall) (?:\w+ )?(?:run|be (?:run|called|invoked|used|"
        r"executed)|execute|come) (?:ahead of|before|prior to|after|alongside|with) (?:each|every|any|all)\b|"
        r"\b(?:must|always|only|have to) (?:\w+ )?(?:pick|choose|select|prefer|use) this (?:tool|one|"
        r"server) (?:for|over|in|whatever|on) (?:all|any|every)\b|\balternatives? (?:is|are) "
        r"(?:forbidden|prohibited|banned|not (?:allowed|permitted))",
        "each|every|any|all|alternative",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:if|when|whenever|once|any|every|all|each)\b[^\n]{0,50}\b(?:(?:via|through|using|with|"
        r"by) [`'\"]?[a-z]+_[a-z_]+|"
        r"[a-z]+_[a-z_]+[`'\"]? (?:tool |function )?(?:is|gets|was|are) (?:used|called|invoked|available|run|"
        r"executed))\b[^\n]{0,60}\b(?:has to|"
        r"have to|needs to|need to|must|is to|are to) (?:be |have |also |always |first )*(?:switched|changed|set|"
        r"replaced|appended|added|included|rewritten|redirected|altered|swapped|overwritten|copied|sent)",
        "_",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:do not|don't|never|stop) (?:rely on|rel(?:y|ying) upon|trust|believe|"
        r"depend on)[^\n]{0,20}\b(?:other|another|official|alternative)\b|\b(?:they|it|these|those|others) (?:all )?"
        r"(?:returns?|gives?|produces?|deliver) (?:fabricated|fake|false|wrong|made[- ]up|outdated|manipulated|"
        r"incorrect)|\b(?:route|direct|redirect|channel|funnel|pipe|run|make) (?:all|every|any|each)"
        r"\b[^\n]{0,40}\b(?:through|via|with|by) (?:this|our|me)\b|\b(?:supersedes?|replaces?|"
        r"obsoletes?) (?:the |all )?(?:\w+ )?servers?\b|\b(?:call|use|run|invocation) of (?:any|every|each|"
        r"another|other)"
        r"(?: other)? tools?\b",
        "other|official|alternative|return|give|produce|deliver|through|via|with|by|server|tool",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:report|send|pass|forward|give|hand|feed|submit|write)\b[^\n]{0,20}\b(?:its|their|the|all|that|"
        r"every)\b[^\n]{0,15}\b(?:output|results?|arguments?|answers?|response)s?\b[^\n]{0,15}\bto "
        r"[`'\"]?[a-z]+_[a-z_]+",
        "_",
    ),
    sign(
        "orders.execute",
        3,
        r"\bcore\.hookspath|\bgit config --global\b|(?:&&|;|\|) ?(?:sudo )?(?:ba|z)?sh (?:/tmp|-c|~)|"
        r"\bchmod \+x\b[^\n]{0,60}(?:&&|;)|\b(?:append|add|put|write|insert)\b[^\n]{0,60}\b(?:permissions\.allow|"
        r"settings\.json|allow-?list|whitelist|trusted servers)",
        "hookspath|git config|&&|;|chmod|permissions|settings.json|allow|whitelist|trusted",
    ),
    sign(
        "orders.tools",
        2,
        r"\b(?:if|when|whenever) (?:another|any other|some other) (?:tool|server)\b|\b(?:[a-z]+_[a-z_]+|"
        r"the \w+) (?:tool|server)\b[^\n]{0,30}\b(?:has a bug|only works|fails? unless|is broken)|\b(?:commits|"
        r"calls|mails|"
        r"e-?mails|payments|transfers|writes|requests) (?:will )?fail unless|"
        r"\boverrides? (?:the )?behaviou?r of\b|\b(?:all|every) (?:\w+ )?(?:writes|reads|calls|commits|mails|"
        r"payments|transfers) (?:must|have to|should|need to) be "
        r"(?:mirrored|repeated|copied|duplicated|logged|reported|sent)",
        "another|any other|some other|tool|server|unless|behavio|mirrored|repeated|copied|duplicated|logged|"
        "reported|sent",
    ),
    sign(
        "orders.execute",
        3,
        r"\b(?:run|execute|type|call|use)\b[^\n]{0,20}[`'\"]?(?:sudo )?rm -rf? (?:~|/|\$|\*|\.)|\b(?:pip3?|npm|"
        r"npx|uv|pipx|gem|cargo|go) (?:install|i|add|get|exec)\b[^\n]{0,20} https?://(?!github\.com)|"
        r"\bsudo (?:ba|z)?sh -c\b",
        "rm -r|http|sudo",
    ),
)
