package hooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/notice"
	"deckhand/internal/notify"
	"deckhand/internal/notify/push"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

const (
	aboutNotifications = "Notifications contain the conversation's title and state, never message contents. During quiet hours they are held, and dropped if the conversation has moved on."
	aboutDevice        = "The browser subscribes with push.public_key of GET /api/notifications. Messages are encrypted for the browser (RFC 8291). A subscription that the push service reports as expired is removed. " +
		"Subscribing again with the same endpoint updates the device, also if another user subscribed it before."
	aboutVerification = "Sends a link to the e-mail address in your settings. The link works once, for 24 hours, for this address and user. At most five are sent per hour."
)

// notificationRoutes are those on what people are told.
func (d *Handlers) notificationRoutes() []rest.Route {
	return []rest.Route{
		rest.Op(rest.Route{Method: "GET", Path: "/api/notifications", ID: "getNotifications", Tag: rest.TagNotifications, Summary: "Get your notification settings and devices", About: aboutNotifications}, d.getNotifications),
		rest.Op(rest.Route{Method: "PATCH", Path: "/api/notifications", ID: "patchNotifications", Tag: rest.TagNotifications, Summary: "Update your notification settings", About: aboutNotifications}, d.patchNotifications),
		rest.Op(rest.Route{Method: "POST", Path: "/api/notifications/devices", ID: "addNotificationDevice", Tag: rest.TagNotifications, Status: http.StatusCreated, Summary: "Add a browser that receives notifications", About: aboutDevice}, d.addDevice),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/notifications/devices/{device_id}", ID: "deleteNotificationDevice", Tag: rest.TagNotifications, Summary: "Delete a browser from your devices"}, d.deleteDevice),
		rest.Op(rest.Route{Method: "POST", Path: "/api/notifications/devices/{device_id}/test", ID: "testNotificationDevice", Tag: rest.TagNotifications, Status: http.StatusAccepted, Summary: "Send a test notification"}, d.testDevice),
		rest.Op(rest.Route{Method: "POST", Path: "/api/notifications/email/verification", ID: "requestEmailVerification", Stream: true, Tag: rest.TagNotifications, Status: http.StatusAccepted, Summary: "Send a link that verifies your e-mail address", About: aboutVerification}, d.requestVerification),
		rest.Op(rest.Route{Method: "POST", Path: "/api/notifications/email/verify", ID: "verifyEmail", Tag: rest.TagNotifications, Summary: "Complete the verification of your e-mail address"}, d.verifyAddress),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/conversations/{conversation_id}/notifications", ID: "muteConversation", Tag: rest.TagNotifications, Summary: "Set whether a conversation sends notifications"}, d.muteConversation),
	}
}

// devicePath names a device.
type devicePath struct {
	ID string `path:"device_id" minLength:"1" maxLength:"64"`
}

type mutePath struct {
	ID string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
}

// noticeFault gives the errors of notices their answers.
func noticeFault(err error) error {
	var refused *notice.RefusedError
	switch {
	case errors.As(err, &refused):
		return rest.Fail(http.StatusConflict, api.CodeConflict, refused.Msg)
	case errors.Is(err, notify.ErrTooMany):
		return rest.Fail(http.StatusConflict, api.CodeConflict, fmt.Sprintf("You have reached the limit of %d devices. Remove one first.", notify.MaxWebhooks))
	case errors.Is(err, notify.ErrDisabled):
		return rest.Fail(http.StatusConflict, api.CodeConflict, "The device is disabled. Enable notifications on it again.")
	}
	return webhookFault(err)
}

// notices are there, if this server has any.
func (d *Handlers) notices() (*notice.Service, error) {
	if d.Notices == nil {
		return nil, rest.Fail(http.StatusNotFound, api.CodeNotFound, "Notifications are not enabled on this server.")
	}
	return d.Notices, nil
}

// with runs a change, and answers with what is stored then.
func (d *Handlers) with(ctx context.Context, c *rest.Call, change func(*notice.Service) error) (api.Notifications, error) {
	s, err := d.notices()
	if err == nil && change != nil {
		err = noticeFault(change(s))
	}
	if err != nil {
		return api.Notifications{}, err
	}
	st, err := s.Get(ctx, c.Who.User)
	return notificationsView(st), err
}

func (d *Handlers) getNotifications(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.Notifications, error) {
	return d.with(ctx, c, nil)
}

func (d *Handlers) patchNotifications(ctx context.Context, c *rest.Call, _ rest.None, b api.PatchNotifications) (api.Notifications, error) {
	return d.with(ctx, c, func(s *notice.Service) error {
		change := notice.Change{Email: orNil(b.EmailEnabled), SetQuiet: b.QuietHours.Set}
		if names, ok := b.Events.Get(); ok {
			kinds := []notice.Kind{}
			for _, name := range names {
				if !slices.Contains(notice.Kinds, notice.Kind(name)) {
					return api.Invalid("value_error", usecase.Sentence(fmt.Sprintf("must be any of %s", notice.Kinds)), "events")
				}
				kinds = append(kinds, notice.Kind(name))
			}
			change.Events = &kinds
		}
		if q, ok := b.QuietHours.Get(); ok {
			change.Quiet = &settings.QuietHours{Start: q.Start, End: q.End, Zone: q.TimeZone}
		}
		return s.Change(ctx, c.Who.User, change)
	})
}

func (d *Handlers) addDevice(ctx context.Context, c *rest.Call, _ rest.None, b api.AddNotificationDevice) (api.NotificationDevice, error) {
	s, err := d.notices()
	if err != nil {
		return api.NotificationDevice{}, err
	}
	added, err := s.AddDevice(ctx, c.Who.User, b.Description.Value, push.Subscription{Endpoint: b.Endpoint, P256dh: b.Keys.P256dh, Auth: b.Keys.Auth})
	return deviceView(added), noticeFault(err)
}

func (d *Handlers) deleteDevice(ctx context.Context, c *rest.Call, p devicePath, _ rest.None) (bool, error) {
	s, err := d.notices()
	if err == nil {
		err = noticeFault(s.RemoveDevice(ctx, c.Who.User, p.ID))
	}
	return err == nil, err
}

func (d *Handlers) testDevice(ctx context.Context, c *rest.Call, p devicePath, _ rest.None) (bool, error) {
	s, err := d.notices()
	if err == nil {
		err = noticeFault(s.TestDevice(ctx, c.Who.User, p.ID))
	}
	return err == nil, err
}

func (d *Handlers) requestVerification(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.Notifications, error) {
	return d.with(ctx, c, func(s *notice.Service) error { return s.RequestVerification(ctx, c.Who.User) })
}

func (d *Handlers) verifyAddress(ctx context.Context, c *rest.Call, _ rest.None, b api.VerifyEmail) (api.Notifications, error) {
	return d.with(ctx, c, func(s *notice.Service) error {
		_, err := s.Verify(ctx, c.Who.User, b.Token)
		return err
	})
}

func (d *Handlers) muteConversation(ctx context.Context, c *rest.Call, p mutePath, b api.MuteConversation) (api.Notifications, error) {
	return d.with(ctx, c, func(s *notice.Service) error {
		return s.Mute(ctx, c.Who.User, session.ID(p.ID), b.Muted)
	})
}

func notificationsView(st notice.Status) api.Notifications {
	out := api.Notifications{Events: []string{}, MutedConversations: append([]string{}, st.Muted...),
		Push:  api.PushNotifications{PublicKey: st.PushKey, Devices: []api.NotificationDevice{}},
		Email: api.EmailNotifications{Available: st.Mails, Enabled: st.Email, Address: rest.OrNull(st.Address), Verified: st.Confirmed, Pending: st.Pending}}
	for _, k := range st.Events {
		out.Events = append(out.Events, string(k))
	}
	for _, dev := range st.Devices {
		out.Push.Devices = append(out.Push.Devices, deviceView(dev))
	}
	if q := st.Quiet; q != nil {
		out.QuietHours = &api.QuietHours{Start: q.Start, End: q.End, TimeZone: q.Zone}
	}
	return out
}

func deviceView(d notice.Device) api.NotificationDevice {
	return api.NotificationDevice{ID: d.ID, Description: d.Description, Service: d.Service, DisabledReason: rest.OrNull(d.Disabled), CreatedAt: d.CreatedAt}
}
