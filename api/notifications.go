package api

import "time"

// Notifications is how you are told about your conversations.
type Notifications struct {
	Events             []string           `json:"events" doc:"Events that send notifications: any of approval (a call needs approval), question (the agent waits for your reply), finished and failed."`
	QuietHours         *QuietHours        `json:"quiet_hours" doc:"When notifications are held; null for never."`
	MutedConversations []string           `json:"muted_conversations" doc:"IDs of conversations that send no notifications."`
	Push               PushNotifications  `json:"push"`
	Email              EmailNotifications `json:"email"`
}

// PushNotifications are the browsers that receive notifications by web push.
type PushNotifications struct {
	PublicKey string               `json:"public_key" doc:"applicationServerKey that a browser must subscribe with."`
	Devices   []NotificationDevice `json:"devices"`
}

// NotificationDevice is a browser that receives notifications.
type NotificationDevice struct {
	ID             string    `json:"id"`
	Description    string    `json:"description"`
	Service        string    `json:"service" doc:"Host of the browser's push service."`
	DisabledReason *string   `json:"disabled_reason" doc:"Reason why the device is disabled; otherwise null."`
	CreatedAt      time.Time `json:"created_at"`
}

// EmailNotifications is whether and where notifications are sent by e-mail.
type EmailNotifications struct {
	Available bool    `json:"available" doc:"Whether this server sends e-mail."`
	Enabled   bool    `json:"enabled" doc:"Whether you want notifications by e-mail."`
	Address   *string `json:"address" doc:"Your e-mail address; null if there is none."`
	Verified  bool    `json:"verified" doc:"Whether the address is verified. Notifications are sent only to verified addresses."`
	Pending   bool    `json:"pending" doc:"Whether a verification link was sent that has not expired."`
}

// QuietHours are a span of each day. It may go past midnight.
type QuietHours struct {
	Start    string `json:"start" maxLength:"5" doc:"Start time, such as 22:00."`
	End      string `json:"end" maxLength:"5" doc:"End time, such as 07:00."`
	TimeZone string `json:"time_zone" maxLength:"64" doc:"IANA time zone, such as Europe/Berlin."`
}

// PatchNotifications is the body of PATCH /api/notifications. Omitted fields stay.
type PatchNotifications struct {
	Events       Opt[[]string]   `json:"events,omitzero" nullable:"false" maxItems:"10" doc:"Any of approval, question, finished and failed."`
	EmailEnabled Opt[bool]       `json:"email_enabled,omitzero" nullable:"false" doc:"Whether to send notifications by e-mail, once the address is verified."`
	QuietHours   Opt[QuietHours] `json:"quiet_hours,omitzero" doc:"null for none."`
}

// AddNotificationDevice is the body of POST /api/notifications/devices: what PushSubscription.toJSON
// returns in the browser, and a description.
type AddNotificationDevice struct {
	Endpoint    string      `json:"endpoint" minLength:"1" maxLength:"2000"`
	Keys        PushKeys    `json:"keys"`
	Description Opt[string] `json:"description,omitzero" nullable:"false" maxLength:"200" doc:"Name of the device, such as Firefox on Linux."`
}

// PushKeys are the keys of a browser, in base64url.
type PushKeys struct {
	P256dh string `json:"p256dh" maxLength:"200" doc:"Public key."`
	Auth   string `json:"auth" maxLength:"50" doc:"Authentication secret."`
}

// VerifyEmail is the body of POST /api/notifications/email/verify.
type VerifyEmail struct {
	Token string `json:"token" minLength:"1" maxLength:"200" doc:"Part of the link in the e-mail after #verify=."`
}

// MuteConversation is the body of PUT /api/conversations/{conversation_id}/notifications.
type MuteConversation struct {
	Muted bool `json:"muted" doc:"Whether the conversation sends no notifications."`
}
