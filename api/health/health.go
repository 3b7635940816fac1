// Package health has the types of the routes on the state of the server, for administrators.
package health

import "time"

// ServerHealth is the response of GET /api/admin/health.
type ServerHealth struct {
	Status       string         `json:"status" enum:"ok,warning,failed" doc:"The worst status of the parts."`
	Version      string         `json:"version"`
	GoVersion    string         `json:"go_version"`
	System       string         `json:"system" doc:"Operating system and kernel of the server's machine, such as Linux 6.1.0; empty if unknown."`
	StartedAt    time.Time      `json:"started_at"`
	CheckedAt    time.Time      `json:"checked_at"`
	LogLevel     string         `json:"log_level" enum:"debug,info,warn,error"`
	Parts        []HealthPart   `json:"parts"`
	Queue        HealthQueue    `json:"queue"`
	Sandboxes    SandboxesInUse `json:"sandboxes"`
	Disks        []DiskSpace    `json:"disks"`
	Memory       MachineMemory  `json:"memory"`
	LastBackupAt *time.Time     `json:"last_backup_at" doc:"Time of the last backup, which deckhand backup records in the file last-backup in the data directory; null if none is recorded."`
}

// HealthPart is a part of the server, or a service that it uses.
type HealthPart struct {
	ID      string `json:"id" enum:"database,nats,sandbox,model,git,notifications,sign_on,disk,backup"`
	Name    string `json:"name" doc:"The driver, provider or host; empty if there is only one."`
	Version string `json:"version" doc:"Name and version of the database, the NATS server or the container engine; otherwise empty."`
	Status  string `json:"status" enum:"ok,warning,failed,off"`
	Problem string `json:"problem" doc:"Code of the problem; empty if there is none."`
	Message string `json:"message" doc:"What is wrong and what to do, in English; empty if nothing is wrong."`
	Detail  string `json:"detail" doc:"The error; empty if there is none."`
	// Attempts and Failures are those of model calls since the start, and of deliveries in the last hour.
	Attempts int64 `json:"attempts" doc:"Model calls since the server started, or deliveries in the last hour; otherwise 0."`
	Failures int64 `json:"failures" doc:"How many of them failed."`
}

// HealthQueue is the work that waits.
type HealthQueue struct {
	Working  int       `json:"working" doc:"Conversations that an agent is working on."`
	Waiting  int       `json:"waiting" doc:"Conversations that wait for an agent."`
	Running  int       `json:"running" doc:"Running conversations: those whose agent has a turn in progress."`
	Queued   int       `json:"queued" doc:"Conversations that wait for a free slot."`
	Limits   Limits    `json:"limits"`
	Users    []UserUse `json:"users" doc:"Users with running or queued conversations, those with most queued ones first; at most 100."`
	Requests int       `json:"requests" doc:"HTTP requests in progress, without streams."`
	Streams  int       `json:"streams" doc:"Open event streams."`
	Jobs     []JobLine `json:"jobs"`
}

// Limits are the limits on running and queued conversations.
type Limits struct {
	Running        int `json:"running"`
	RunningPerUser int `json:"running_per_user"`
	Queued         int `json:"queued"`
	QueuedPerUser  int `json:"queued_per_user"`
}

// UserUse counts the running and queued conversations of a user on all servers.
type UserUse struct {
	User    string `json:"user"`
	Running int    `json:"running"`
	Queued  int    `json:"queued"`
	Reason  string `json:"reason" enum:",server_limit,user_limit" doc:"The limit that the user's conversations wait for; empty if none waits."`
}

// JobLine is a durable queue.
type JobLine struct {
	Queue   string `json:"queue" enum:"webhooks,triggers,attempts"`
	Waiting int    `json:"waiting"`
}

// SandboxesInUse are the sandboxes that the server is connected to.
type SandboxesInUse struct {
	Driver    string       `json:"driver"`
	Suspended int          `json:"suspended"`
	Running   []SandboxUse `json:"running" doc:"At most 200, those with the most memory first."`
	Total     int          `json:"total" doc:"Number of running sandboxes."`
}

// SandboxUse is a running sandbox. It has no title and no content of its conversation.
type SandboxUse struct {
	ConversationID string   `json:"conversation_id"`
	User           string   `json:"user"`
	CPUs           *float64 `json:"cpus" doc:"Processors in use since the last request; null if unknown."`
	CPULimit       float64  `json:"cpu_limit"`
	Memory         *int64   `json:"memory" doc:"Bytes used by processes; null if the sandbox does not respond."`
	MemoryLimit    int64    `json:"memory_limit"`
	Disk           *int64   `json:"disk" doc:"Bytes on disk as measured last; null if not measured."`
	DiskLimit      int64    `json:"disk_limit"`
	Processes      *int     `json:"processes" doc:"Processes and threads; null if the sandbox does not respond."`
}

// DiskSpace is a file system that the server writes to.
type DiskSpace struct {
	Path  string `json:"path"`
	Total int64  `json:"total"`
	Free  int64  `json:"free"`
}

// MachineMemory is the memory of the machine.
type MachineMemory struct {
	Total     int64 `json:"total" doc:"0 if unknown."`
	Available int64 `json:"available"`
}

// EndedSandbox is the response of POST /api/admin/sandboxes/{conversation_id}/end.
type EndedSandbox struct {
	Status string `json:"status" enum:"ok"`
}

// LogLevel is the body of PUT /api/admin/log-level, and its response.
type LogLevel struct {
	Level string `json:"level" enum:"debug,info,warn,error" doc:"Applies until the server is restarted or reloads its configuration."`
}
