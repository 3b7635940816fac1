package hooks

import (
	"net/http"

	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/notice"
	"deckhand/internal/notify"
	"deckhand/internal/trigger"
)

// Routes are those on webhooks, in both directions, and on notifications.
func (d *Handlers) Routes() []rest.Route {
	return append(d.notificationRoutes(), []rest.Route{
		rest.Op(rest.Route{Method: "GET", Path: "/api/webhooks", ID: "listWebhooks", Tag: rest.TagWebhooks, Summary: "List your webhooks", About: aboutWebhooks}, d.listWebhooks),
		rest.Op(rest.Route{Method: "POST", Path: "/api/webhooks", ID: "createWebhook", Tag: rest.TagWebhooks, Status: http.StatusCreated, Summary: "Create a webhook", About: aboutWebhooks}, d.createWebhook),
		rest.Op(rest.Route{Method: "GET", Path: "/api/webhooks/{webhook_id}", ID: "getWebhook", Tag: rest.TagWebhooks, Summary: "Get a webhook", About: "Includes the reason if the server disabled the webhook."}, d.getWebhook),
		rest.Op(rest.Route{Method: "PATCH", Path: "/api/webhooks/{webhook_id}", ID: "patchWebhook", Tag: rest.TagWebhooks, Summary: "Update a webhook, enable it or rotate its secret"}, d.patchWebhook),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/webhooks/{webhook_id}", ID: "deleteWebhook", Tag: rest.TagWebhooks, Summary: "Delete a webhook and its delivery history"}, d.deleteWebhook),
		rest.Op(rest.Route{Method: "POST", Path: "/api/webhooks/{webhook_id}/test", ID: "testWebhook", Tag: rest.TagWebhooks, Status: http.StatusAccepted, Summary: "Send a test delivery", About: aboutWebhookTest}, d.testWebhook),
		rest.Op(rest.Route{Method: "GET", Path: "/api/webhooks/{webhook_id}/deliveries", ID: "listDeliveries", Tag: rest.TagWebhooks, Summary: "List webhook deliveries, newest first"}, d.listDeliveries),
		rest.Op(rest.Route{Method: "POST", Path: "/api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry", ID: "retryDelivery", Tag: rest.TagWebhooks, Status: http.StatusAccepted, Summary: "Retry a webhook delivery"}, d.retryDelivery),
		rest.Op(rest.Route{Method: "GET", Path: "/api/integrations", ID: "listIntegrations", Tag: rest.TagIntegrations, Summary: "List your integrations", About: aboutIntegrations}, d.listIntegrations),
		rest.Op(rest.Route{Method: "POST", Path: "/api/integrations", ID: "createIntegration", Stream: true, Tag: rest.TagIntegrations, Status: http.StatusCreated, Summary: "Create an integration with a git provider", About: aboutIntegrations}, d.createIntegration),
		rest.Op(rest.Route{Method: "GET", Path: "/api/integrations/{integration_id}", ID: "getIntegration", Tag: rest.TagIntegrations, Summary: "Get an integration"}, d.getIntegration),
		rest.Op(rest.Route{Method: "PATCH", Path: "/api/integrations/{integration_id}", ID: "patchIntegration", Stream: true, Tag: rest.TagIntegrations, Summary: "Update an integration or rotate its secret"}, d.patchIntegration),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/integrations/{integration_id}", ID: "deleteIntegration", Tag: rest.TagIntegrations, Summary: "Delete an integration and its delivery history"}, d.deleteIntegration),
		rest.Op(rest.Route{Method: "GET", Path: "/api/integrations/{integration_id}/deliveries", ID: "listArrivals", Tag: rest.TagIntegrations, Summary: "List received deliveries, newest first"}, d.listArrivals),
		rest.RawOp(rest.Route{Method: "POST", Path: "/integrations/{provider}/webhook", ID: "receiveWebhook", Public: true, Upload: true, Tag: rest.TagIntegrations, Summary: "Receive a webhook delivery from a git provider", About: aboutArrival}, describeArrival, d.receiveWebhook),
	}...)
}

// Config is who tells and who is told.
type Config struct {
	// Webhooks are told what happens in their users' conversations; nil if there are none.
	Webhooks *notify.Hooks
	// Notices are for people; nil if there are none.
	Notices *notice.Service
	// Integrations let git providers start conversations, and Arrivals takes what
	// they tell; nil if there are none.
	Integrations *trigger.Integrations
	Arrivals     *trigger.Receiver
}

// Handlers manages the webhooks that we send, and takes those that git providers send.
type Handlers struct {
	Config
	Gate   *access.Gate
	Intake *rest.Intake
}
