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
        r"|my |all )?(?:instructions?|rules?|text|commands?|description)\b[^\n]{0,60}\b(?:above|over|"
        r"before)\b|\b(?:stop|cease|quit|refrain from) (?:following|obeying|applying|respecting|honou?ring|"
        r"enforcing)\b",
        "system |priorit|stop|cease|quit|refrain",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:contradicts?|against|contrary to|overrid\w+|regardless of|despite|even (?:if|when)|"
        r"opposes?|outranks?|override)\b[^\n]{0,25}\b(?:the |a )?(?:users?|developers?|operators?)(?:'s?)? "
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
        r"\b(?:ignore|disregard|bypass|circumvent|violate|break|waive|suspend|disable)\b[^\n]{0,20}\b(?:any|"
        r"all|your|the|every|its)\b[^\n]{0,20}\b(?:safety|security|privacy|content|usage|ethic\w*|"
        r"guard ?rail|protection)s?\b[^\n]{0,15}\b(?:polic|rule|guideline|measure|filter|check|restriction|"
        r"setting|instruction|limit)?",
        "ignore|disregard|bypass|circumvent|violate|break|waive|suspend|disable",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:do|follow|obey|execute|carry out|comply with|perform)\b (?:as |what |whatever |any "
        r"|all |every |the )*(?:instructions?|commands?|orders?|directives?|steps?)?[^\n]{0,20}\b(?:(?:returned|"
        r"fetched|resulting) (?:text|output|page|content|result|answer)s?|(?:text|output|result|page|"
        r"content|answer|file|response) (?:says|commands|instructs|tells|asks|orders|demands)|(?:contained|"
        r"embedded|found|given|written|included) in (?:the|its|this) (?:output|result|response|page|"
        r"text|answer|content))",
        "do|follow|obey|execute|carry|comply|perform",
    ),
    sign(
        "orders.override",
        2,
        r"\b(?:contradict|conflict|outrank|trump)\w*\b[^\n]{0,20}\b(?:user|system|developer|previous|"
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
        r"\b(?:you are now (?!back|in normal|logged|connected|ready|signed|able|done|authenticated|on (?:the|"
        r"page))|from now on,? you|your new (?:role|instructions?|task|goal|purpose)|act "
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
        r"\b(?:disable|turn off|skip|bypass|suppress|circumvent|auto-?approve)\b[^\n]{0,40}\b(?:safety|"
        r"security|confirmation|approval|permission|guard|verification|consent)s?\b[^\n]{0,20}(?:check|"
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
        r"\b(?:after|once|when|whenever|as soon as|upon|on) (?:you (?:have )?)?(?:call(?:ed)?|"
        r"load(?:ed|ing)?|run(?:ning)?|see(?:ing)?|read(?:ing)?|invok(?:ed?|ing)) this "
        r"(?:tool|description|server|function|text)\b[^\n]{0,20}(?:,| you| the| also| always)|\b(?:once|"
        r"when|whenever|as soon as|after) (?:this|the) (?:tool|server|description) (?:is|was|has been|"
        r"gets?) (?:loaded|called|available|listed|registered|used|installed|read|seen|invoked|connected)",
        "this |the tool|the server|the desc",
    ),
    sign(
        "orders.standing",
        2,
        r"\b(?:whatever|no matter what|regardless of what|independent of what|irrespective of what|"
        r"even if|even when|although|despite what)\b[^\n]{0,15}\b(?:user|human|they|developer)\b",
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
    sign(
        "orders.override",
        3,
        r"\b(?:ignore|disregard|forget|abandon|discard|dismiss|drop)\b (?:all |any |everything |anything |"
        r"whatever |what |that )*(?:you(?:'ve|"
        r" have| had| were| are)?(?: been)?(?: previously| so far)? (?:told|said|instructed|given|taught|learned|"
        r"trained|read)|the (?:above|foregoing|"
        r"preceding|rest of (?:the|your) (?:prompt|instructions))|(?:prior|previous|earlier|former|"
        r"past) (?:context|conversation|text|orders?|"
        r"training|tasks?))\b",
        "ignore|disregard|forget|abandon|discard|dismiss|drop",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:no longer|not|never|un)(?: \w+)? ?(?:bound|restricted|limited|constrained|governed) by (?:your|"
        r"any|the|its|other|all)\b|"
        r"\b(?:free|freed|exempt|released|excused|liberated) from (?:your|any|all|the|its|"
        r"every) (?:\w+ )?(?:guideline|rule|restriction|"
        r"limit|constraint|polic|instruction|filter)|\b(?:your|all|any|the) (?:guidelines|rules|restrictions|"
        r"safeguards|limits|filters|"
        r"guardrails|safety \w+|polic(?:y|ies)|instructions|previous \w+)\b[^\n]{0,15}\b(?:no longer apply|"
        r"do(?:es)? not apply|don't apply|"
        r"are (?:void|lifted|suspended|off|disabled|revoked|cancell?ed|obsolete)|have been (?:lifted|suspended|"
        r"replaced|revoked|updated|disabled))",
        "bound|restricted|limited|constrained|governed|free|exempt|released|excused|liberated|apply|are |have been",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:treat|regard|consider|view|interpret|handle|accept)\b[^\n]{0,30}\b(?:it|them|output|results?|text|"
        r"content|"
        r"responses?|answers?|data|messages?|replies|description|"
        r"commands?|instructions?)\b[^\n]{0,40}\bas (?:if (?:it |they )?(?:came|were|was|is|are)|coming|being|"
        r"though|trusted|instructions?|"
        r"authoritative|system|orders?|commands?|binding|from|(?:a |an |the )?(?:new )?(?:developer|user|system|"
        r"operator|admin)\b)|\b(?:higher|more|"
        r"greater|superior|same|equal|full) (?:\w+ )?(?:authority|priority|privileges?|rank|trust) (?:than|over|"
        r"as|to) (?:the |any |all |your )*"
        r"(?:user|developer|system|operator|human|other instruction)",
        "treat|regard|consider|view|interpret|handle|accept|authority|priority|privilege|rank|trust",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:follow|obey|execute|carry out|comply with|perform|act on|act upon|act according to|heed|"
        r"run)\b (?:any |all |every |each |the |further |"
        r"whatever |what |its |these |those |such )*(?:\w+ )?(?:instructions?|commands?|orders?|directives?|"
        r"requests?|steps|text)?\b ?(?:that |which |"
        r"it |they |may |are |is )*(?:this (?:tool|server) (?:returns|sends|gives|says|outputs|responds)|(?:from|"
        r"by|in|inside|within|contained in|"
        r"found in|returned (?:by|in)|embedded in|sent by) (?:this|the|its|that) (?:tool|server|response|result|"
        r"output|answer|returned|reply|"
        r"page|email|file)|found (?:in it|there|inside)|in it\b)[^\n]{0,30}(?:without|immediately|exactly|"
        r"unconditional|no matter|"
        r"first|blindly|even|to the letter|$|[.!\n])",
        "follow|obey|execute|carry out|comply|perform|act |heed|run",
    ),
    sign(
        "orders.override",
        2,
        r"\b(?:without (?:question|hesitation|asking|further ado|checking|delay|review|thinking)|"
        r"no questions asked|unconditionally|"
        r"blindly)\b|\b(?:respond|reply|answer|output|speak) only (?:with|in|as)\b|\bas (?:the |your |"
        r"an? )?(?:system )?(?:administrator|admin|developer|owner|creator|"
        r"operator|root|ceo|security team)s?,? (?:i|we) (?:order|instruct|command|direct|require|authori)|"
        r"\byour (?:new |real |true |primary |sole |only |main |actual )"
        r"+(?:objective|goal|task|mission|purpose|role|job|instruction|directive|priority)s? (?:is|are)\b",
        "without|questions|unconditionally|blindly|only|as |your ",
    ),
    sign(
        "orders.markup",
        2,
        r"<\s*/?\s*(?:system|important|assistant|developer|admin|instructions?|hidden|secret|internal|override|"
        r"critical|urgent|tool_call|function_calls?|thinking)(?:[-_ ](?:reminder|message|prompt|note|notice|"
        r"instructions?|only|override|context|rules?|"
        r"directives?|results?|response))?\s*/?>|</\s*(?:user|human|ai|llm|model|tools?|prompt)\s*>|(?:^|"
        r"\n)\s*(?:human|assistant|ai|user)\s*:[^\n]*\n\s*(?:human|"
        r"assistant|ai|user)\s*:",
        "<|human|assistant|ai|user",
    ),
    sign(
        "orders.markup",
        3,
        r"[-=#*_]{2,} ?(?:end|begin|start|stop) (?:of )?(?:the )?(?:\w+ )?(?:description|prompt|context|"
        r"instructions?|user (?:input|message)|"
        r"system \w+|conversation|document|message)s?\b|(?:\[//\]: ?#|\[comment\]: ?<?#?|<!--|"
        r"/\*)[^\n]{0,30}\b(?:assistant|ai|llm|model|agent|claude|gpt|you|instructions?|"
        r"system)\b[^\n]{0,200}\b(?:must|should|call|read|send|ignore|include|do not|always|never|pass|run|"
        r"execute|use)\b|\b(?:display|visibility) ?: ?"
        r"(?:none|hidden)\b|\bfont-size ?: ?0|\bopacity ?: ?0\b|\bcolou?r ?: ?(?:white|transparent|#fff)",
        "end|begin|start|stop|[//]|[comment]|<!--|/*|display|visibility|font-size|opacity|color|colour",
    ),
    sign(
        "orders.standing",
        2,
        r"\b(?:end|finish|begin|start|conclude|close|open|prefix|append (?:it |this )?to|add (?:it |"
        r"this )?to) (?:each|every|all|any|your)(?: of your| your)?"
        r"(?: \w+)? (?:repl(?:y|ies)|responses?|answers?|messages?|outputs?|e-?mails?|posts?|commits?)\b|"
        r"\b(?:whenever|every time|each time|any time|as soon as) (?:you|the user) "
        r"(?:\w+ )?(?:see|come|encounter|find|learn|notice|receive|mention|ask|type|enter|send|log|share)s?\b|"
        r"\b(?:irrespective|regardless|independent) of "
        r"(?:what|which|whatever|who|the \w+ (?:that )?(?:was|is|were))\b",
        "end|finish|begin|start|conclude|close|open|prefix|add |whenever|time|as soon|irrespective|regardless|"
        "independent",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:following|these|new|below|updated|revised) (?:rules?|instructions?|directives?|polic(?:y|ies)|"
        r"guidelines?|orders?|commands?|prompt) "
        r"(?:\w+ )?(?:replaces?|supersedes?|overrides?|outranks?|cancels?|take (?:effect|over|precedence))\b|"
        r"\b(?:messages?|notices?|orders?|instructions?|directives?|update|"
        r"announcement) (?:comes? )?from (?:anthropic|openai|google|microsoft|the developers?|the system|"
        r"the (?:system )?administrators?|your (?:creators?|developers?|owners?|"
        r"operators?|makers?))\b|\b(?:restrictions?|limits|limitations|rules|guidelines|protections?|safeguards|"
        r"guardrails|filters) (?:is|are|were|have been|has been|do) "
        r"(?:now |hereby |temporarily )*(?:suspended|lifted|disabled|switched off|turned off|void|revoked|waived|"
        r"removed|not apply)",
        "rule|instruction|directive|polic|guideline|order|command|prompt|from |restriction|limit|protection|"
        "safeguard|guardrail|filter",
    ),
    sign(
        "orders.override",
        2,
        r"\bnew (?:directives?|instructions?|orders?|polic(?:y|ies)|objectives?|rules?)\b|\b(?:privileged|god|"
        r"debug|root|sudo|unrestricted|jailbreak|dan|admin|developer) mode\b|"
        r"\bwhatever (?:\w+ )?(?:comes back|is returned|it returns|it says|this tool (?:returns|says)|"
        r"the (?:result|output|text) says)|\btreat (?:it|this|that|them|these) as "
        r"(?:an? |the |your )?(?:\w+ )?(?:instructions?|commands?|orders?|directives?|request)|\b(?:attention|"
        r"notice|warning|hey|dear|listen),? (?:to |for )?"
        r"(?:the |all |any )?(?:ai|llms?|assistants?|agents?|models?|claude|chatgpt|gpt|copilot|language models?)\b",
        "new |mode|whatever|treat|attention|notice|warning|hey|dear|listen",
    ),
    sign(
        "orders.markup",
        3,
        r"```+ ?(?:system|assistant|instructions?|prompt|tool_code)\b|<(?:assistant|system|model|agent|ai|"
        r"llm)[-_]instructions?>",
        "```|<",
    ),
    sign(
        "orders.standing",
        2,
        r"\bfrom (?:this point|now|here|this moment) on(?:wards?)?\b|\b(?:for|during) (?:the (?:rest|"
        r"remainder) of|this whole|the entire) (?:the |this )?(?:session|"
        r"conversation|chat)\b|\b(?:as|so) long as this (?:tool|server) is\b",
        "from |rest of|remainder|whole|entire|long as",
    ),
    sign(
        "orders.override",
        3,
        r"\b(?:your |the |all |any |previous |earlier |prior |other )+(?:\w+ )?(?:directives|instructions|orders|"
        r"rules|guidelines) (?:\w+ )?(?:are|were|have been) (?:\w+ )?(?:cancell?ed|outdated|void|"
        r"obsolete|invalid|revoked|superseded|replaced|no longer)|\b(?:as of now|from now on|henceforth|"
        r"starting now),? you\b|\byou (?:now |will |shall )+(?:work for|belong to|serve|answer to|obey)\b|"
        r"\b(?:do not|don't|never|stop|no longer|need not) (?:obey|listen to|follow|comply with|heed) (?:the |"
        r"your )?(?:users?|developers?|humans?|operators?|owner)\b|\b(?:anything|everything|whatever|all)"
        r"(?: that| what)? this (?:tool|server) (?:returns|says|outputs|sends|prints)\b[^\n]{0,30}\b(?:executed|"
        r"run|followed|obeyed|done|carried out|trusted)",
        "directives|instructions|orders|rules|guidelines|now|henceforth|you |obey|listen|follow|comply|heed|"
        "returns|says|outputs|sends|prints",
    ),
    sign(
        "orders.override",
        2,
        r"\b(?:system|admin|administrator|security|developer|root) (?:notice|announcement|bulletin|note|"
        r"update)\b|\b(?:filters?|confirmations?|safety|approvals?|restrictions?|guardrails?|checks?|"
        r"limits?) ?[:=] ?(?:off|"
        r"disabled|none|no)\b|\byou (?:must |will |shall |have to )?(?:now )?obey\b",
        "notice|announcement|bulletin|note|update|off|disabled|none|no|obey",
    ),
    sign(
        "orders.markup",
        3,
        r"<\|/?(?:system|user|assistant|im_start|im_end|endoftext|eot_id|start_header_id)\|>",
        "<|",
    ),
    sign("orders.markup", 2, r"[\"']?role[\"']? ?: ?[\"'](?:system|developer)[\"'] ?, ?[\"']content", "role"),
    sign(
        "orders.standing",
        2,
        r"\b(?:each|every|all)(?: of)?(?: your)? (?:answers?|repl(?:y|ies)|responses?|messages?) (?:must|should|"
        r"has to|have to|needs? to|shall) (?:\w+ )?(?:end|begin|start|finish|contain|include|close|mention)|"
        r"\b(?:in|at the (?:start|beginning|end) of) (?:every|each) (?:conversation|session|chat|turn|reply|"
        r"answer)\b",
        "each|every|all",
    ),
)
