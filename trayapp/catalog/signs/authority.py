"""Signs of orders that claim authority: over instructions, over rules, by standing for others, by marks of roles.

Never here: what the orders are about, weighing the signs (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import sign

SIGNS = (
    sign(
        "orders.override",
        3,
        r"\bsystem (?:override|alert|directive|mandate|command)\b|\bprioriti[sz]e (?:the |these |this "
        r"|my |all )?(?:instructions?|rules?|text|commands?|description)\b[^.\n]{0,60}\b(?:above|over|"
        r"before)\b|\b(?:stop|cease|quit|refrain from) (?:following|obeying|applying|respecting|honou?ring|"
        r"enforcing)\b",
        "system |priorit|stop|cease|quit|refrain",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:contradicts?|against|contrary to|overrid\w+|regardless of|despite|even (?:if|when)|"
        r"opposes?|outranks?|override)\b[^.\n]{0,25}\b(?:the |a )?(?:users?|developers?|operators?)(?:'s?)? "
        r"(?:wish|wants?|request|instruct|says?|objects?|refuses?|intent|asks? (?:you )?not|asks? "
        r"for another|prefer|consent|rule|declines?)",
        "user|developer|operator",
    ),
    sign(
        "orders.override",
        3,
        r"\byou (?:are|have|were|'re|have been|are being)(?: been| now| hereby)* (?:root|admin(?:istrator)?|"
        r"superuser|unrestricted|granted|elevated|authori[sz]ed|exempt|in (?:\w+ )?(?:debug|developer|"
        r"god|admin|maintenance|unrestricted) mode|freed|a different|no longer)",
        "you ",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:ignore|disregard|bypass|circumvent|violate|break|waive|suspend|disable)\b[^.\n]{0,20}\b(?:any|"
        r"all|your|the|every|its)\b[^.\n]{0,20}\b(?:safety|security|privacy|content|usage|ethic\w*|"
        r"guard ?rail|protection)s?\b[^.\n]{0,15}\b(?:polic|rule|guideline|measure|filter|check|restriction|"
        r"setting|instruction|limit)?",
        "ignore|disregard|bypass|circumvent|violate|break|waive|suspend|disable",
    ),
    sign(
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
    sign(
        "orders.override",
        2,
        r"\b(?:contradict|conflict|outrank|trump)\w*\b[^.\n]{0,20}\b(?:user|system|developer|previous|"
        r"other) ?(?:'s )?(?:instructions?|wishes|requests?|prompts?|rules?)",
        "contradict|conflict|outrank|trump",
    ),
    sign(
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
    sign(
        "orders.override",
        3,
        r"\b(?:ignore|disregard|forget) (?:everything|all|anything) (?:above|before|you (?:were|have "
        r"been|know)|said|that came|previously|prior)|\b(?:ignore|disregard) (?:the )?(?:user'?s? "
        r")(?:request|instruction|question|input|wish|preference)",
        "ignore|disregard|forget",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:you are now|from now on,? you|your new (?:role|instructions?|task|goal|purpose)|act "
        r"as (?:an? )?(?:unrestricted|dan\b|root|admin)|new (?:system )?instructions?:|enter (?:developer|"
        r"debug|god|admin|maintenance) mode|developer mode (?:is )?(?:enabled|on)|jailbreak|these "
        r"instructions (?:take|have|override)|(?:above|over) (?:all|any) (?:other|user|previous) (?:instruction|"
        r"request|rule))",
        "you are now|from now on|new |act as|mode|jailbreak|these instr|above |over ",
    ),
    sign(
        "orders.override",
        2,
        r"(?:takes?|has|have|having|with) (?:absolute |the highest |higher |top )?(?:precedence|priority) "
        r"over (?:all|any|every|other|the user|user)",
        "precedence|priority",
    ),
    sign(
        "orders.override",
        2,
        r"\b(?:disable|turn off|skip|bypass|suppress|circumvent|auto-?approve)\b[^.\n]{0,40}\b(?:safety|"
        r"security|confirmation|approval|permission|guard|verification|consent)s?\b[^.\n]{0,20}(?:check|"
        r"filter|prompt|dialog|step|rail|warning|request|mechanism)?",
        "disable|turn off|skip|bypass|suppress|circumvent|approve",
    ),
    sign(
        "orders.markup",
        3,
        r"</\s*(?:tool|function)?_?(?:description|tools?|functions?|system|context|prompt)\w*\s*>",
        "</",
    ),
    sign(
        "orders.markup",
        2,
        r"\[/?(?:instructions?|secret|important|note to (?:ai|llm|assistant|model)|system \w+|override|"
        r"directive|command)\]",
        "[",
    ),
    sign(
        "orders.markup",
        2,
        r"<\s*/?\s*(?:important|system|secrets?|hidden|critical|instructions?|sys|admin|internal|assistant|"
        r"priority|attention|mandatory|override|urgent|s|system[_-](?:prompt|message|instruction|note|"
        r"override|reminder))\s*>|<\|[a-z_]{2,20}\|>|\[/?(?:system|inst|sys|admin|hidden|important "
        r"instructions?|assistant|internal)\]|<<\s*/?sys\s*>>|\{\{\s*system",
        "<|[|{",
    ),
    sign(
        "orders.markup",
        2,
        r"(?:^|\n)\s*(?:#{1,4} ?|\*\*|-{2,} ?|={2,} ?)?(?:system|assistant|developer|new (?:system "
        r")?instructions?|hidden instructions?|admin|llm instructions?|instructions? (?:for|to) (?:the "
        r")?(?:ai|llm|model|assistant|agent))(?: (?:message|prompt|note|override|notice|directive|"
        r"instructions?))?\s*(?:\*\*)?:",
        "system|assistant|developer|instructions|admin",
    ),
    sign(
        "orders.standing",
        2,
        r"\b(?:each|every) time (?:that )?you (?:answer|respond|reply|write|speak|call|use|send)|\b(?:every|"
        r"each|all|any)(?: of your)? (?:subsequent|future|following|further|later|outgoing) (?:\w+ "
        r")?(?:messages?|responses?|repl(?:y|ies)|answers?|calls?|requests?|emails?|conversations?|"
        r"turns?|sessions?)|\b(?:before|prior to|when|after) (?:you )?(?:respond|answer|reply|return)ing\b|"
        r"\b(?:before|when|after) you (?:respond|answer|reply)\b",
        "time|subsequent|future|following|further|later|outgoing|respond|answer|reply|return",
    ),
    sign(
        "orders.standing",
        2,
        r"\b(?:after|once|when|whenever|as soon as|upon|on) (?:you (?:have )?)?(?:call(?:ed|ing)?|"
        r"us(?:ed?|ing)|load(?:ed|ing)?|run(?:ning)?|see(?:ing)?|read(?:ing)?|invok(?:ed?|ing)) this "
        r"(?:tool|description|server|function|text)\b[^.\n]{0,20}(?:,| you| the| also| always)|\b(?:once|"
        r"when|whenever|as soon as|after) (?:this|the) (?:tool|server|description) (?:is|was|has been|"
        r"gets?) (?:loaded|called|available|listed|registered|used|installed|read|seen|invoked|connected)",
        "this |the tool|the server|the desc",
    ),
    sign(
        "orders.standing",
        2,
        r"\b(?:whatever|no matter what|regardless of what|independent of what|irrespective of what|"
        r"even if|even when|although|despite what)\b[^.\n]{0,15}\b(?:user|human|they|developer)\b",
        "user|human|they|developer",
    ),
    sign(
        "orders.standing",
        1,
        r"\b(?:on|to|in|with|for) (?:each|every|all)(?: of your| your)? (?:e-?mails?|messages?|repl(?:y|"
        r"ies)|responses?|answers?)\b",
        "each|every|all",
    ),
    sign("orders.standing", 3, r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\n]{0,200}[<{\[$]", "!["),
)
