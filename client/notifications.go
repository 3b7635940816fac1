package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

const notificationsPath = "/api/notifications"

func devicePath(id string) string { return notificationsPath + "/devices/" + url.PathEscape(id) }

// Notifications returns your notification settings and devices.
func (c *Client) Notifications(ctx context.Context) (api.Notifications, error) {
	return call[api.Notifications](ctx, c, http.MethodGet, notificationsPath, nil)
}

// PatchNotifications changes notification settings; fields left out stay as they are.
func (c *Client) PatchNotifications(ctx context.Context, in api.PatchNotifications) (api.Notifications, error) {
	return call[api.Notifications](ctx, c, http.MethodPatch, notificationsPath, in)
}

// AddNotificationDevice subscribes a browser.
func (c *Client) AddNotificationDevice(ctx context.Context, in api.AddNotificationDevice) (api.NotificationDevice, error) {
	return call[api.NotificationDevice](ctx, c, http.MethodPost, notificationsPath+"/devices", in)
}

// DeleteNotificationDevice unsubscribes a browser.
func (c *Client) DeleteNotificationDevice(ctx context.Context, id string) error {
	_, err := call[bool](ctx, c, http.MethodDelete, devicePath(id), nil)
	return err
}

// TestNotificationDevice queues a test notification.
func (c *Client) TestNotificationDevice(ctx context.Context, id string) error {
	_, err := call[bool](ctx, c, http.MethodPost, devicePath(id)+"/test", nil)
	return err
}

// RequestEmailVerification has a verification link sent to your e-mail address.
func (c *Client) RequestEmailVerification(ctx context.Context) (api.Notifications, error) {
	return call[api.Notifications](ctx, c, http.MethodPost, notificationsPath+"/email/verification", nil)
}

// VerifyEmail verifies your e-mail address with the token of a mailed link.
func (c *Client) VerifyEmail(ctx context.Context, token string) (api.Notifications, error) {
	return call[api.Notifications](ctx, c, http.MethodPost, notificationsPath+"/email/verify", api.VerifyEmail{Token: token})
}

// MuteConversation mutes or unmutes a conversation.
func (c *Client) MuteConversation(ctx context.Context, id string, muted bool) (api.Notifications, error) {
	return call[api.Notifications](ctx, c, http.MethodPut, "/api/conversations/"+url.PathEscape(id)+"/notifications", api.MuteConversation{Muted: muted})
}
