package rest

// Tags group the routes for readers.
const (
	TagHealth        = "Health"
	TagSettings      = "Settings"
	TagConversations = "Conversations"
	TagEvents        = "Events"
	TagWorkspace     = "Workspace"
	TagGit           = "Git providers"
	TagKeys          = "Keys"
	TagFeedback      = "Feedback"
	TagWebhooks      = "Webhooks"
	TagNotifications = "Notifications"
	TagIntegrations  = "Integrations"
	TagPages         = "Pages"
	TagOlder         = "Older clients"
)
