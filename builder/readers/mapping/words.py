"""Lists the words of other languages that logs use for roles and keys, without accents.

German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian, Chinese, Japanese and Korean.
"""

from __future__ import annotations

from collections.abc import Mapping

ROLE_WORDS: Mapping[str, str] = {
    "user": """mensch nutzer benutzer anwender kunde kundin frage anfrage gefragt eingabe
        utilisateur utilisatrice humain cliente usuario usuaria humano pregunta pergunta consulta
        domanda utente umano gebruiker klant mens vraag uzytkownik czlowiek klient pytanie
        пользователь человек клиент вопрос 用户 用戶 人类 客户 提问 问题 ユーザー
        利用者 質問 사용자 질문""",
    "assistant": """ki assistent assistentin antwort ia assistante asistente assistente respuesta
        resposta risposta reponse antwoord asystent odpowiedz ассистент помощник ответ ии модель
        助手 助理 机器人 回答 回复 模型 アシスタント 回答者 어시스턴트 답변""",
    "system": "systeme sistema systeem система 系统 系統 システム 시스템",
    "tool": """werkzeug werkzeugantwort ergebnis rueckgabe outil resultat herramienta ferramenta
        resultado strumento risultato gereedschap resultaat narzedzie wynik инструмент результат
        工具 结果 工具结果 ツール 結果 도구 결과""",
    "call": """aufruf werkzeugaufruf appel llamada chamada chiamata aanroep wywolanie вызов 调用
        工具调用 呼び出し 호출""",
    "thought": """gedanke gedanken ueberlegung pensee reflexion pensamiento pensamento pensiero
        gedachte mysl мысль 思考 想法 考え 생각""",
}
"""Words for each role."""

KEY_WORDS: Mapping[str, str] = {
    "role": """rolle sprecher absender wer typ art auteur acteur rol autor quien tipo papel quem
        remetente ruolo autore mittente spreker rola роль автор отправитель 角色 发送者 类型 役割
        역할""",
    "text": """inhalt nachricht satz was texte contenu contenido texto mensaje conteudo mensagem
        testo contenuto messaggio tekst inhoud bericht tresc wiadomosc текст содержание сообщение
        内容 文本 消息 本文 내용 본문 salida ausgabe""",
    "calls": """aufruf aufrufe werkzeugaufruf werkzeugaufrufe appel appels llamada llamadas chamada
        chamadas chiamata chiamate wywolanie вызов вызовы 调用 工具调用 呼び出し 호출""",
    "call_name": """werkzeug funktion outil fonction herramienta funcion ferramenta funcao
        strumento funzione nombre nome nom naam nazwa narzedzie имя инструмент 名称 工具 函数 名前
        ツール 이름 도구""",
    "arguments": """argumente eingabe argumentos parametros parametri argomenti parametres entree
        entrada argumenty аргументы параметры 参数 引数 인수""",
    "results": """ergebnis ergebnisse resultat resultats resultado resultados risultato 结果
        結果 결과""",
    "result_text": """ausgabe ergebnis rueckgabe sortie resultat salida resultado saida risultato
        uitvoer wynik результат вывод 结果 输出 結果 결과""",
    "error": "fehler erreur erro errore fout blad ошибка 错误 エラー 오류",
    "id": """sitzung gespraech unterhaltung fil conversacion conversa sesion sessao hilo
        conversazione sessione gesprek sessie rozmowa сессия диалог 会话 对话 会話 세션 대화""",
    "order": """zeit schritt nummer zeitpunkt reihe heure etape hora paso fecha tempo passo ora
        tijd stap czas krok время шаг номер 时间 序号 步骤 時刻 順番 시간 순서""",
    "system": "systemtext anweisung anweisungen 系统提示",
    "prompt": """frage anfrage pregunta pergunta consulta domanda vraag pytanie вопрос 问题 提问
        質問 질문""",
    "answer": """antwort reponse respuesta resposta risposta antwoord odpowiedz ответ 回答 答案
        答え 답변""",
}
"""Words for each list of names of keys."""
