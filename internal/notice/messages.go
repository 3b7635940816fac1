package notice

import "strings"

// messages are the texts of notices in one language.
type messages struct {
	approval, question, finished, failed string
	test, testText                       string
	open, change                         string
	verify, verifyText, verifyIgnore     string
}

// languages are the languages of the web page, by the codes of the setting language.
var languages = map[string]messages{
	"en": {
		approval: "Needs approval", question: "Waiting for your reply", finished: "Done", failed: "Failed",
		test: "Test notification", testText: "Notifications from Deckhand arrive on this device.",
		open: "Open the conversation:", change: "To change e-mail notifications, open Settings > Notifications:",
		verify: "Confirm your e-mail address", verifyText: "To receive notifications from Deckhand at this address, open this link within 24 hours:",
		verifyIgnore: "If you did not request this e-mail, ignore it. Nothing more will be sent to this address.",
	},
	"de": {
		approval: "Freigabe nötig", question: "Wartet auf deine Antwort", finished: "Fertig", failed: "Fehlgeschlagen",
		test: "Testbenachrichtigung", testText: "Benachrichtigungen von Deckhand kommen auf diesem Gerät an.",
		open: "Unterhaltung öffnen:", change: "E-Mail-Benachrichtigungen ändern unter Einstellungen > Benachrichtigungen:",
		verify: "Bestätige deine E-Mail-Adresse", verifyText: "Um Benachrichtigungen von Deckhand an diese Adresse zu erhalten, öffne diesen Link innerhalb von 24 Stunden:",
		verifyIgnore: "Wenn du diese E-Mail nicht angefordert hast, ignoriere sie. Dann wird nichts an diese Adresse gesendet.",
	},
	"es": {
		approval: "Necesita aprobación", question: "Esperando tu respuesta", finished: "Terminado", failed: "Error",
		test: "Notificación de prueba", testText: "Las notificaciones de Deckhand llegan a este dispositivo.",
		open: "Abrir la conversación:", change: "Para cambiar las notificaciones por correo, abre Ajustes > Notificaciones:",
		verify: "Confirma tu dirección de correo", verifyText: "Para recibir notificaciones de Deckhand en esta dirección, abre este enlace en un plazo de 24 horas:",
		verifyIgnore: "Si no solicitaste este correo, ignóralo. No se enviará nada a esta dirección.",
	},
	"fr": {
		approval: "Approbation requise", question: "En attente de votre réponse", finished: "Terminé", failed: "Échec",
		test: "Notification de test", testText: "Les notifications de Deckhand arrivent sur cet appareil.",
		open: "Ouvrir la conversation :", change: "Pour modifier les notifications par e-mail, ouvrez Réglages > Notifications :",
		verify: "Confirmez votre adresse e-mail", verifyText: "Pour recevoir les notifications de Deckhand à cette adresse, ouvrez ce lien dans les 24 heures :",
		verifyIgnore: "Si vous n'avez pas demandé cet e-mail, ignorez-le. Rien ne sera envoyé à cette adresse.",
	},
	"ja": {
		approval: "承認が必要です", question: "返信を待っています", finished: "完了", failed: "失敗",
		test: "テスト通知", testText: "Deckhand の通知がこの端末に届きます。",
		open: "会話を開く:", change: "メール通知の変更は「設定」>「通知」から:",
		verify: "メールアドレスの確認", verifyText: "このアドレスで Deckhand の通知を受け取るには、24 時間以内に次のリンクを開いてください:",
		verifyIgnore: "このメールに心当たりがない場合は無視してください。このアドレスには何も送信されません。",
	},
	"pt": {
		approval: "Precisa de aprovação", question: "À espera da sua resposta", finished: "Concluído", failed: "Falhou",
		test: "Notificação de teste", testText: "As notificações do Deckhand chegam a este dispositivo.",
		open: "Abrir a conversa:", change: "Para alterar as notificações por e-mail, abra Configurações > Notificações:",
		verify: "Confirme o seu endereço de e-mail", verifyText: "Para receber notificações do Deckhand neste endereço, abra este link em até 24 horas:",
		verifyIgnore: "Se não pediu este e-mail, ignore-o. Nada será enviado para este endereço.",
	},
	"zh-CN": {
		approval: "需要批准", question: "等待你的回复", finished: "已完成", failed: "失败",
		test: "测试通知", testText: "Deckhand 的通知可以送达此设备。",
		open: "打开对话:", change: "要更改电子邮件通知,请打开“设置”>“通知”:",
		verify: "确认你的电子邮件地址", verifyText: "要在此地址接收 Deckhand 的通知,请在 24 小时内打开此链接:",
		verifyIgnore: "如果你没有请求此邮件,请忽略它。不会向此地址发送任何内容。",
	},
}

// messagesIn returns the texts in the language of a setting, or in English.
func messagesIn(language string) messages {
	if w, ok := languages[language]; ok {
		return w
	}
	first, _, _ := strings.Cut(language, "-")
	if first == "zh" {
		first = "zh-CN"
	}
	if w, ok := languages[first]; ok {
		return w
	}
	return languages["en"]
}

// of returns the text of a kind of notice.
func (w messages) of(k Kind) string {
	return map[Kind]string{Approval: w.approval, Question: w.question, Finished: w.finished, Failed: w.failed}[k]
}
