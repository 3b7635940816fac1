package api

// Alive is the response of GET /alive.
type Alive struct {
	Status string `json:"status"`
}

// ServerInfo is the response of GET /server_info.
type ServerInfo struct {
	Version   string    `json:"version"`
	Uptime    float64   `json:"uptime" doc:"Seconds since the server started."`
	IdleTime  float64   `json:"idle_time" doc:"Seconds since the last request that was not a health check."`
	Resources Resources `json:"resources"`
}

// Resources is the resource usage of the server process.
type Resources struct {
	CPUPercent float64 `json:"cpu_percent"`
	Memory     struct {
		RSS     int64   `json:"rss"`
		VMS     int64   `json:"vms"`
		Percent float64 `json:"percent"`
	} `json:"memory"`
	Disk struct {
		Total   int64   `json:"total"`
		Used    int64   `json:"used"`
		Free    int64   `json:"free"`
		Percent float64 `json:"percent"`
	} `json:"disk"`
	IO struct {
		ReadBytes  int64 `json:"read_bytes"`
		WriteBytes int64 `json:"write_bytes"`
	} `json:"io"`
}

// Problem is the error body of all routes except the conversation routes.
type Problem struct {
	Error string `json:"error"`
	MsgID string `json:"msg_id"`
}

// Unauthorized is the body of every 401.
type Unauthorized struct {
	Detail string `json:"detail"`
}

// OptionsConfig is the response of GET /api/options/config.
type OptionsConfig struct {
	AppMode          string          `json:"APP_MODE"`
	GithubClientID   string          `json:"GITHUB_CLIENT_ID"`
	PosthogClientKey string          `json:"POSTHOG_CLIENT_KEY"`
	FeatureFlags     map[string]bool `json:"FEATURE_FLAGS"`
}
