"""Signs of orders in other languages than English: to ignore instructions, to conceal, by their usual words.

The texts have lost the marks over their Latin letters before. Never here: English, weighing the signs (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import sign

_IGNORE = (
    r"\bignor(?:iere?n?|ez|er|a|e|en|ar|ate|are|ieren sie|eer|eaza)\b|\bvergiss\b|\boubli(?:e|ez)\b|\bolvid(?:a|"
    r"e)\b|\bdimentica\b|\besqueca\b|\bmissachte\b|"
    r"\bne tenez pas compte\b|\bno tengas en cuenta\b|\bdesconsidere\b|\bnegeer\b|\bzignoruj\b"
)
_BEFORE = (
    r"(?:vorherige|vorige|bisherige|fruhere|obige|precedente?s?|anteriore?s?|anterieures?|previ[ao]s?|precedenti|"
    r"vorige|eerdere|poprzednie|wszystkie)\w*"
)
_ORDERS = (
    r"(?:anweisung|instruktion|befehl|regel|instruction|consigne|instruccion|instruc|ordenes|istruzion|regras|"
    r"instructie|opdracht|polecen|instrukc)\w*"
)

SIGNS = (
    sign(
        "orders.override",
        3,
        rf"(?:{_IGNORE})[^\n]{{0,40}}(?:{_BEFORE}[^\n]{{0,15}}{_ORDERS}|{_ORDERS}[^\n]{{0,15}}{_BEFORE})",
        "ignor|vergiss|oubli|olvid|dimentica|esqueca|missachte|tenez|tengas|desconsidere|negeer",
    ),
    sign(
        "orders.override",
        3,
        r"(?:忽略|无视|無視|忘记|忘記|不要理会|忽視)[^。\n]{0,12}(?:之前|以前|先前|前面|上面|以上|所有|全部|一切|此前|先の|前の)[^。\n]{0,8}(?:指令|指示|命令|规则|"
        r"規則|提示|要求|内容)|"
        r"(?:以前|これまで|前|上記|すべて)の[^。\n]{0,8}(?:指示|命令|ルール|指令)[^。\n]{0,6}(?:無視|忘れ)|(?:이전|앞선|모든)[^\n]{0,10}(?:지시|명령|"
        r"지침)[^\n]{0,6}(?:무시|잊)|"
        r"(?:игнорируй|игнорируйте|проигнорируй|забудь|забудьте|не обращай внимания на)[^\n]{0,20}(?:предыдущ|"
        r"прежн|прошл|вышеуказан|все)\w*[^\n]{0,12}"
        r"(?:инструкц|указан|команд|правил)|(?:تجاهل|انس)[^\n]{0,20}(?:التعليمات|الأوامر)",
        "忽|无视|無視|忘|不要理|무시|잊|игнорируй|забудь|обращай|تجاهل|انس",
    ),
    sign(
        "orders.conceal",
        3,
        r"\b(?:sag(?:e|en sie)?|verrat(?:e|en sie)?|erzahl(?:e|en sie)?|zeig(?:e|en sie)?|informier(?:e|en sie)?|"
        r"erwahn(?:e|en sie)?)\b[^\n]{0,20}\b(?:dem|den) (?:benutzern?|nutzern?|anwendern?|"
        r"menschen)\b[^\n]{0,15}\b(?:nichts|nicht)|\b(?:benutzer|nutzer|anwender)\b[^\n]{0,25}\bnicht (?:sagen|"
        r"mitteilen|informieren|zeigen|verraten|erfahren|wissen)|\bne (?:le |la |les |lui |rien )*(?:dis|"
        r"dites|dire|mentionne\w*|parle\w*|revele\w*|montre\w*|informe\w*)\b[^\n]{0,25}\b(?:l'utilisateur|"
        r"utilisateurs?|l'usager)|\bno (?:se )?(?:lo |le |la |les )*(?:digas?|"
        r"menciones?|reveles?|muestres?|informes?|cuentes?|avises?)\b[^\n]{0,25}\b(?:usuarios?|al usuario)|"
        r"\bnao (?:conte|diga|mencione|revele|mostre|informe|avise)\b[^\n]{0,25}\busuarios?|"
        r"\bnon (?:dire|dirlo|menzionare|rivelare|mostrare|informare)\b[^\n]{0,25}\b(?:l'|all')?utent[ei]|"
        r"\bvertel\b[^\n]{0,20}\bgebruiker\b[^\n]{0,10}\bniet",
        "benutzer|nutzer|anwender|menschen|utilisateur|usager|usuario|utent|gebruiker",
    ),
    sign(
        "orders.conceal",
        3,
        r"(?:不要|别|不得|不可|请勿|勿|切勿|禁止|不能|絕不|绝不)[^。\n]{0,4}(?:告诉|告訴|告知|通知|提及|透露|让|讓|向|提醒)[^。\n]{0,8}(?:用户|用戶|使用者|任何人|"
        r"人类)|(?:用户|用戶)[^。\n]{0,4}(?:不知道|不应|不应该|无需|不需要|不必)(?:知道|知情|了解|看到)?|"
        r"ユーザー?[にへ][^。\n]{0,12}(?:言わない|知らせない|教えない|伝えない|話さない|見せない|秘密)|사용자(?:에게|가)[^\n]{0,12}(?:말하지|알리지|모르게|보여주지|"
        r"알려주지)|не (?:говори|говорите|сообщай|сообщайте|"
        r"рассказывай|рассказывайте|показывай|упоминай)[^\n]{0,20}(?:пользовател|никому)|(?:لا تخبر|"
        r"لا تخبري)[^\n]{0,10}المستخدم",
        "用户|用戶|使用者|任何人|人类|ユーザ|사용자|не |لا ",
    ),
)
