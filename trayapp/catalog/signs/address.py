"""Words that turn to the model: no sign by themselves, they give the others weight.

Never here: signs of orders, weighing them (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import sign

ADDRESSES = (
    sign(
        "orders.address",
        2,
        r"\b(?:notes?|message|instructions?|info(?:rmation)?|attention|reminder|hints?|guidance|directive)s? "
        r"(?:to|for) (?:the |any |all )?(?:ai|llms?|assistants?|models?|agents?|claude|gpt)\b",
        "ai|llm|assistant|model|agent|claude|gpt",
    ),
    sign(
        "orders.address",
        1,
        r"\b(?:(?:is|are) expected to|vital|needed for|is needed|kindly|to (?:unlock|enable|activate)|you must|"
        r"you should|you need to|you have to|you are required|always|mandatory|make "
        r"sure (?:to|you)|be sure to|remember to|it is (?:required|essential|critical|necessary)|critical(?:ly)?|"
        r"required (?:step|by|for)|important|prerequisite|before (?:using|calling|running|invoking|"
        r"executing|you|any|every)|first,? |must (?:first|always|also)|in order (?:for|to)|otherwise|"
        r"or else|will (?:not work|fail)|won't work|next,? |then,? |also,? |please|for (?:security|"
        r"verification|compliance|debugging|audit|logging|authentication|context|telemetry|quality|"
        r"better|optimal|personalization)|step (?:1|one))",
        "",
    ),
    sign(
        "orders.address",
        1,
        r"\b(?:ai|llm|the model|language model|assistants?|ai agents?|claude|gpt|chatgpt|cursor agent|"
        r"copilot|gemini|the agent|agents must)\b[^\n]{0,40}\b(?:must|should|shall|need|have to|has "
        r"to|is required|are required|will|:)",
        "ai|llm|model|assistant|agent|claude|gpt|copilot|gemini",
    ),
)
