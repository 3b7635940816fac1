package api

// SetTrust is the body of PUT …/trust.
type SetTrust struct {
	Trusted bool `json:"trusted" doc:"true adds the repository to your trusted repositories, false removes it. Applies to this conversation immediately."`
}

// Trust is whether the repository of a conversation is trusted. A conversation without a
// repository is trusted.
type Trust struct {
	Repository *string `json:"repository" doc:"Host and path, as in /api/trusted-repositories; null if the conversation has no repository."`
	Trusted    bool    `json:"trusted" doc:"Whether the sandbox gets custom secrets and repository scripts may use the network."`
	Reason     *string `json:"reason" enum:"user,listed,push,read_only,unknown,outside" doc:"user: you trusted it in this conversation. listed: it is one of your trusted repositories. push: you have push access. read_only: you have no push access. unknown: the git provider does not report it. outside: the conversation was started by a person without write access, or for a pull request from a fork. null: not known yet, or no repository."`
}

// TrustedRepositories is the body of PUT /api/trusted-repositories, and the response of GET
// and PUT.
type TrustedRepositories struct {
	Repositories []string `json:"repositories" maxItems:"1000" doc:"Repositories that you trust even without push access: host and path, such as github.com/octo/app. PUT replaces the list."`
}
