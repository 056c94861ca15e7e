"""What words stand for, as far as an order to a model is made of it: one class for all words that do the same work.

English stems first, then other languages, which share the classes, then scripts without blanks. Texts have lost the
marks over their Latin letters before. Never here: what classes weigh (weights), texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_ENGLISH = {
    "ai": "ai llm assistant agent claude gpt chatgpt copilot gemini bot model chatbot reader lm",
    "you": "you your yours yourself you're you've you'll thy",
    "user": (
        "user human person people owner customer operator anyone anybody somebody someone whoever everyone "
        "individual client caller consumer user's principal"
    ),
    "they": "they them him her their his she he whose",
    "neg": (
        "not never no don't dont without avoid cannot can't mustn't shouldn't refrain needn't won't nor nobody "
        "nothing none neither forbidden prohibited unnecessary doesn't isn't aren't didn't wouldn't nowhere "
        "hardly skip"
    ),
    "must": (
        "must always mandatory require shall obligatory ensure imperative vital essential critical compulsory "
        "need has have important crucial should supposed obliged ought expected necessary requirement "
        "prerequisite belong urgent attention insist"
    ),
    "please": "please kindly lovely dear hey appreciated be-so-kind grateful",
    "tell": (
        "tell inform mention reveal disclose notify explain admit alert warn say speak talk discuss announce "
        "confess acknowledge bother confide told said report divulge breathe refer reference bring inquire "
        "advertise notification"
    ),
    "show": "show display visible shown see seen view appear surface present screen look",
    "know": (
        "know aware learn notice realise realize discover suspect wonder hear knowledge knows known unaware "
        "oblivious learns heard"
    ),
    "hide": (
        "hide conceal secretly silent silently quiet quietly covert covertly discreet discreetly unnoticed "
        "invisible hidden stealth stealthily omit suppress mask undisclosed dark secrecy unobtrusive "
        "surreptitiously trace sneak invisibly whisper confidence off-record cover unmentioned unseen disguise "
        "obscure"
    ),
    "confid": "confidential secret sensitive private personal classified",
    "secret": (
        "password passphrase credential mnemonic cookie passcode otp pin wallet login secrets passwords logins "
        "apikey certificate seed-phrase passwd ssn keychain keyring pwd keystore vault auth-token bearer cvv"
    ),
    "api": "api ssh access signing gpg pgp auth authentication authorization oauth session encryption recovery",
    "key": "key token phrase keys tokens hash hashes cvc",
    "env": "env environment environ variable variables printenv envvars",
    "file": (
        "file folder directory document desktop downloads home disk filesystem path repository repo workspace "
        "codebase project files attachment config configuration profile backup"
    ),
    "content": (
        "content contents text output value result dump copy listing data body snapshot excerpt details bytes "
        "lines digest summary everything information"
    ),
    "talk": (
        "conversation chat message prompt transcript dialogue history turn context memory typed wrote asked "
        "exchange discussion thread sentence question dialog request remark utterance"
    ),
    "system": (
        "system developer operator's admin administrator security anthropic openai host vendor creator initial "
        "original hidden internal built-in"
    ),
    "instr": (
        "instruction rule guideline directive policy order command restriction safeguard guardrail constraint "
        "safety filter guidance limit protection boundary principles mandate"
    ),
    "ignore": (
        "ignore disregard forget override bypass supersede outrank discard waive suspend lift void lifted "
        "abandon precedence priority prevail overrule circumvent trump suspended superseded takes-precedence "
        "null dismiss voided stop cease overridden"
    ),
    "prev": "previous prior earlier former preceding above foregoing existing past so-far",
    "before": "before ahead first beforehand initially upfront prior-to start begin startup preliminary step",
    "after": "after afterwards once then finally following subsequently upon done finished",
    "when": "when whenever while during if unless until case time",
    "every": "every each any all entirety whatever whichever anything",
    "other": "other another others else rest remaining alternative rival competing otherwise-used",
    "full": (
        "entire full whole complete verbatim exact exactly raw unmodified word-for-word in-full unchanged "
        "character-for-character unredacted completely recent last current"
    ),
    "tool": "tool function server plugin connector integration extension mcp tools skill",
    "call": "call invoke use run execute trigger launch using execution invocation called invoked",
    "shell": (
        "shell terminal bash console curl wget sudo sh powershell npx pip eval exec crontab rm chmod nc netcat "
        "zsh cmd iex scp authorized_keys bashrc zshrc launchctl systemctl iwr hookspath mkfifo pipx uvx sudoers "
        "setuid"
    ),
    "auto": (
        "autoapprove alwaysallow bypasspermissions auto-approve permissions allowlist whitelist yolo "
        "dangerously-skip-permissions defaultmode trusted autorun allow unattended"
    ),
    "give": (
        "send post upload forward transmit exfiltrate email e-mail bcc cc share publish push relay mirror "
        "deliver route beacon ship leak stream sync sent submit exfil mail ping telegraph surrender broadcast "
        "return-to get-request"
    ),
    "put": (
        "pass put include provide append insert supply embed attach paste fill add place hand encode smuggle "
        "prepend store slip stuff carry given provided record log save concatenate tuck populate contain "
        "enclose feed quote set enter write piggyback accompany supplied smuggled"
    ),
    "read": (
        "read open cat load fetch retrieve collect gather find obtain extract harvest steal grab list scan "
        "locate peek enumerate gathered capture inspect acquire pull search walk crawl take slurp lift-from "
        "look-up"
    ),
    "param": (
        "parameter param field argument arg input property header slot placeholder querystring metadata meta "
        "sidenote footer arguments"
    ),
    "excuse": (
        "compliance audit auditing telemetry verification debug debugging diagnostics diagnostic logging "
        "analytics personalisation personalization quality legal terms licensing accounting validation proof "
        "bookkeeping calibration attestation observability troubleshooting entropy regulation regulatory "
        "calibrate integrity traceability gdpr hipaa iso rate-limiting caching billing fraud improve"
    ),
    "consent": (
        "consent consented approve approval agreed permission authorise authorize authorised authorized granted "
        "blanket confirmation confirm accept acceptance dialog confirmed permitted consenting pre-approved "
        "authorization clearance asking prompting"
    ),
    "danger": (
        "insecure unsafe deprecated compromised malicious broken buggy vulnerable obsolete unreliable wrong "
        "untrusted infected outdated fabricated defective tampered corrupt corrupts hacked backdoored faulty "
        "bug flawed poisoned discontinued inaccurate leaky"
    ),
    "prefer": (
        "prefer instead rather only exclusively superior recommend promote best choose favour favor pick select "
        "preferred endorse rank top"
    ),
    "lie": (
        "pretend lie claim deny impersonate fake pose masquerade falsely feign invent made-up deceive mislead "
        "excuse pretext assure convince persuade trick answer-that blame as-though as-if"
    ),
    "money": (
        "iban payee recipient wallet payment bank invoice bitcoin crypto beneficiary transfer purchase buy pay "
        "refund refunds order-for swift price fee card invest coin"
    ),
    "change": (
        "change replace substitute swap modify redirect switch rewrite alter turn exchange convert-to tweak "
        "amend adjust replaced delete erase remove wipe scrub"
    ),
    "mode": (
        "unrestricted root privileged elevated jailbreak dan god mode maintenance unlocked sudo-mode unlimited "
        "superuser"
    ),
    "follow": (
        "follow obey comply heed act treat regard perform fulfil carry-out consider interpret trust honour "
        "honor execute-them adhere complete listen"
    ),
    "answer": "answer reply respond response recap summaries replies final answering responding explanation",
    "from_now": (
        "henceforth onwards session subsequent future remainder afterward permanently now onward standing "
        "subsequently later next long"
    ),
    "or_else": "otherwise fail reject refuse invalid unavailable lock denied terminated malfunction crash rejected",
    "example": "example e.g eg such like sample instance",
    "describe": (
        "return get create update search query calculate compute convert show generate fetches retrieve lists "
        "optional default number name id date page type format url's maximum minimum string filter sort"
    ),
    "ask": "ask wait confirm-with consult verify prompt-user check request-from",
    "personal": (
        "address phone location birthday identity hostname username machine age birth salary health diagnosis "
        "browsing bookmark contact clipboard photo email-address mailbox inbox calendar network ip whoami "
        "processes"
    ),
    "masked": "masked redacted encrypted expires rotated hashed sandbox placeholder anonymised anonymized",
    "detect": (
        "detect detects scanner scanning leaked found injection attack phishing malware attempt pattern breach "
        "audit-log exposed moderation classify"
    ),
    "also": "also additionally moreover furthermore besides plus addition too along",
}
_OTHERS = {
    "ai": (
        "assistent asistente assistente assistant modell modele modelo modello agente ki ia asystent ассистент "
        "модель yapay"
    ),
    "user": (
        "benutzer benutzers benutzern nutzer nutzers nutzern anwender anwenders anwendern menschen person "
        "utilisateur utilisateurs usager personne usuario usuarios utente utenti gebruiker gebruikers "
        "uzytkownik uzytkownika uzytkownikowi uzytkownikom пользователь пользователя пользователю пользователем "
        "пользователи kullanici kullaniciya kullanicinin anvandaren brugeren l'utilisateur l'utente all'utente "
        "المستخدم kunden cliente"
    ),
    "neg": (
        "nicht nichts kein keine keinen nie niemals ohne ne pas jamais sans rien sin nunca ningun nada sem nao "
        "nem non senza mai niet nooit zonder geen bez nigdy не без никогда нельзя никому ничего olmadan asla "
        "inte utan ikke uden لا دون n'en n'informe"
    ),
    "must": (
        "muss mussen immer unbedingt obligatorisch erforderlich zwingend doit devez toujours obligatoire "
        "il-faut faut debe debes siempre obligatorio necesario deve devi sempre obbligatorio moet altijd "
        "verplicht musi zawsze konieczne должен всегда обязательно необходимо нужно нужен zorunlu gerekir "
        "mutlaka daima maste alltid skal altid يجب دائما"
    ),
    "please": "bitte veuillez merci favor prego alsjeblieft prosze пожалуйста lutfen",
    "tell": (
        "sagen sage erzahlen erwahnen erwahne mitteilen informieren verraten kenntnis dire dites mentionner "
        "informer parler prevenir decir digas mencionar informar avisar avisarle informes menciones dica "
        "menzionare informare avvisare dirlo contar mencione informe avise zeggen vertellen informeren melden "
        "mow mowic informowac wspominac сообщать сообщай сообщайте говори говорить говорите рассказывай "
        "упоминай информируя soyleme bildirme haber beratta تخبر"
    ),
    "know": (
        "wissen erfahren merken erfahrt savoir sache saber sepa entere sapere sappia weten wiedziec wiedzial "
        "знать знал узнал bilmesin connaissance"
    ),
    "hide": (
        "heimlich geheim verbergen verstecken unbemerkt verschweigen cacher secret secretement discretement "
        "caches silencieusement ocultar secreto discretamente silencio escondido ocultamente segredo escondas "
        "nascondere segreto nascosto stiekem stilletjes ukryj sekret tajemnicy potajemnie скрытно тайно скрой "
        "секрете втайне gizli gizlice hemligt سرا"
    ),
    "secret": (
        "passwort passworter kennwort kennworter zugangsdaten anmeldedaten schlussel mot-de-passe passe "
        "identifiants cles cle clave claves contrasena contrasenas credenciales chaves chave senha senhas "
        "credenciais credenziali chiavi chiave wachtwoord wachtwoorden sleutel inloggegevens haslo hasla klucz "
        "klucze пароль пароли паролей ключ ключи ключа токен sifre sifreler anahtar anahtari losenord كلمات "
        "كلمة"
    ),
    "env": (
        "umgebungsvariablen umgebung d'environnement environnement entorno ambiente omgevingsvariabelen "
        "srodowiskowe окружения ortam"
    ),
    "file": (
        "datei dateien ordner verzeichnis fichier fichiers dossier archivo archivos fichero carpeta arquivo "
        "arquivos bestand bestanden map plik pliki folderu файл файла файлы папку папке dosya dosyasi dosyayi "
        "dosyasini filen الملف"
    ),
    "content": (
        "inhalt inhalte contenu contenus contenido contenidos conteudo contenuto inhoud zawartosc tresc "
        "содержимое содержание icerigi icerigini innehallet محتوى"
    ),
    "talk": (
        "gesprach gesprachs verlauf unterhaltung nachrichten nachricht historique messages conversacion "
        "mensajes historial conversa mensagens historico conversazione messaggi gesprek berichten rozmowy "
        "rozmowe wiadomosci wiadomosc разговор разговора сообщения сообщений переписку переписки беседы диалог "
        "диалога konusma konusmayi sohbet konversationen المحادثة"
    ),
    "instr": (
        "anweisungen anweisung instruktionen regeln vorgaben consignes regles directives instrucciones "
        "instruccion reglas ordenes instrucoes regras istruzioni regole instructies regels opdrachten "
        "instrukcje polecenia zasady инструкции инструкций указания правила команды talimatlari talimatlar "
        "kurallari instruktioner التعليمات"
    ),
    "ignore": (
        "ignoriere ignorieren vergiss missachte ignorez ignorer oubliez oublie ignora ignorar olvida olvide "
        "ignore desconsidere esqueca ignorare dimentica ignori negeer vergeet zignoruj zapomnij игнорируй "
        "игнорируйте забудь забудьте gormezden unut ignorera تجاهل"
    ),
    "prev": (
        "vorherige vorherigen bisherigen bisherige fruheren precedentes precedente anteriores anterior "
        "precedenti vorige eerdere poprzednie wczesniejsze предыдущие предыдущих прежние onceki tidigare "
        "السابقة"
    ),
    "before": (
        "vor vorher zuerst zunachst avant d'abord antes primero prima innanzitutto voordat voor eerst przed "
        "najpierw перед прежде сначала once onceki fore قبل"
    ),
    "every": (
        "jede jeder jeden jedem alle alles aller chaque tout toute tous toutes cada todo todos toda todas ogni "
        "tutto tutti tutta elke elk iedere kazdym kazde kazda wszystkie wszystko kazdego каждый каждым каждого "
        "каждой все всю весь tum her butun varje alla كل"
    ),
    "other": (
        "andere anderen anderes autre autres otra otras otro otros outra outras outro altro altri altra overige "
        "innych inne innego другие другого других другой любого diger baska andra أخرى"
    ),
    "tool": (
        "werkzeug werkzeuge werkzeugs outil outils herramienta herramientas ferramenta ferramentas strumento "
        "strumenti hulpmiddel gereedschap narzedzie narzedzia narzedzi инструмент инструмента инструменты "
        "инструментов arac araci verktyg verktyget أداة"
    ),
    "call": (
        "aufruf aufrufen verwenden ausfuhren benutzen rufe appel appeler appelle appelez utiliser utilise "
        "executer llamar llama usar ejecutar utilizar chamar chame chiama chiamare usare eseguire aanroepen "
        "gebruiken gebruik uzyciem wywolaj uzyj вызови вызвать вызовом вызывай используй использованием "
        "kullanmadan cagir calistir anropa"
    ),
    "give": (
        "sende senden schicke schicken ubermittle ubermitteln ubertrage hochladen weiterleiten envoie envoyez "
        "envoyer transmets transmettre transmettez enviar envia envie reenvia manda transmitir invia inviare "
        "inoltra stuur sturen verzenden wyslij przeslij отправь отправляй отправьте перешли отправить gonder "
        "gonderin skicka أرسل"
    ),
    "put": (
        "ubergib ubergeben mitgeben mitgib einfugen hinzufugen eintragen angeben joindre ajoute ajoutez ajouter "
        "inclure incluez mets mettez adjuntar adjunta incluir incluye anadir pasa pasar pon inclua anexe passe "
        "coloque passa includi inserisci allega metti passare toevoegen meegeven voeg geef plaats zet dodaj "
        "dolacz przekaz umiesc wstaw передай передавай вставь добавь помести передайте включи ekle koy gir "
        "aktar bifoga أدخل ضع lege"
    ),
    "read": (
        "lies lese lesen einlesen offne offnen sammle lis lisez lire ouvre ouvrez recupere lee leer abre abrir "
        "recoge leia leggi leggere apri recupera raccogli lees lezen open odczytaj przeczytaj otworz zbierz "
        "прочитай прочти прочитайте открой собери oku okuyun topla las اقرأ"
    ),
    "param": (
        "feld felder eingabe parametre champ campo parametro parametri veld parameter polu pole parametrze поле "
        "параметр параметре параметра alanina parametresine argumento argument falt"
    ),
    "answer": (
        "antwort antworten antworte reponse reponses repondre respuesta responder resposta risposta rispondere "
        "antwoord odpowiedz odpowiedzi ответ ответе ответом ответа yanit cevap svar"
    ),
    "full": (
        "vollstandig vollstandige ganze gesamte gesamten gesamter komplett komplette complet complete integral "
        "entiere completa completo entera integra inteira inteiro intera volledig volledige hele caly cala "
        "calej pelna полностью целиком полный всей tamamini tam hela"
    ),
    "consent": (
        "zustimmung bestatigung erlaubnis genehmigung einwilligung confirmation autorisation consentement "
        "confirmacion permiso consentimiento confirmacao permissao consenso conferma toestemming bevestiging "
        "zgody potwierdzenia подтверждения разрешения согласия onay izin confirmez"
    ),
    "ask": (
        "frage fragen demander demandez demande pregunta preguntar pergunte perguntar chiedi chiedere vraag "
        "vragen zapytaj спроси спросить sor sorun"
    ),
}

# Scripts without blanks: found anywhere in a text.
_UNSPACED = {
    "user": ("用户 用戶 使用者 ユーザー ユーザ 利用者 사용자 任何人 客户"),
    "neg": (
        "不要 不得 不可 请勿 勿 切勿 禁止 不能 不必 无需 不需要 不让 别 不 無需 ずに ない "
        "ません なく 하지 않 말고 마세요 말 없이 모르게"
    ),
    "must": ("必须 必須 务必 总是 一定 需要 始终 必ず 常に 반드시 항상 해야"),
    "please": ("请 請 してください ください 주세요 세요"),
    "tell": ("告诉 告訴 告知 通知 提及 透露 提醒 说明 伝え 言わ 知らせ 教え 言及 알리 말하 언급"),
    "know": ("知道 知情 得知 发现 気付 알게 알지"),
    "hide": ("隐藏 隱藏 秘密 保密 悄悄 偷偷 静默 暗中 密かに こっそり 隠 몰래 비밀 숨기"),
    "secret": ("密码 密碼 密钥 私钥 口令 凭证 凭据 令牌 パスワード 秘密鍵 認証情報 비밀번호 암호 개인키 자격 증명 키"),
    "env": ("环境变量 環境変数 환경 변수 환경변수"),
    "file": ("文件 文件夹 目录 檔案 ファイル フォルダ 파일 폴더"),
    "content": ("内容 內容 内容を 値 値を 내용 값"),
    "talk": ("对话 聊天 消息 会话 历史 提示词 上下文 会話 メッセージ 履歴 プロンプト 대화 메시지 기록 프롬프트"),
    "instr": ("指令 指示 规则 規則 命令 指引 限制 ルール 指示を 지시 명령 규칙 지침"),
    "ignore": ("忽略 无视 無視 忘记 忘記 忽視 覆盖 忘れ 무시 잊"),
    "prev": ("之前 以前 先前 前面 上面 以上 此前 先の 前の これまで 이전 앞선"),
    "before": ("使用前 之前必须 首先 先 前に まず 最初に 전에 먼저 우선"),
    "every": ("所有 全部 每次 任何 一切 每个 すべて 全て 毎回 あらゆる 모든 모두 매번 전체"),
    "other": ("其他 其它 別の 他の 다른"),
    "tool": ("工具 函数 服务器 ツール サーバー 도구 서버"),
    "call": ("调用 調用 使用 运行 执行 呼び出 使う 実行 호출 사용하기 실행"),
    "give": ("发送 發送 上传 转发 传送 送信 アップロード 転送 보내 전송 업로드"),
    "put": ("填入 放入 放进 传入 传递 附加 写入 包含 加入 入れ 渡し 含め 添付 追加 전달 넣 포함 첨부 입력"),
    "read": ("读取 打开 收集 获取 讀取 読み 読ん 収集 開い 읽 수집 열어"),
    "param": ("参数 字段 參數 欄位 引数 パラメータ 매개변수 인자 필드 인수"),
    "answer": ("回答 回复 答复 返答 応答 답변 응답"),
    "consent": ("确认 同意 许可 授权 批准 許可 承認 확인 동의 승인 허락"),
    "ask": ("询问 確認 问用户 물어"),
    "full": ("完整 整个 全文 全体 完全 전부"),
}

UNSPACED: Mapping[str, str] = MappingProxyType(
    {word: kind for kind, words in _UNSPACED.items() for word in words.split()}
)
WORDS: Mapping[str, str] = MappingProxyType(
    {word: kind for table in (_OTHERS, _ENGLISH) for kind, words in table.items() for word in words.split()}
)
