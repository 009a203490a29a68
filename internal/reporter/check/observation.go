package check

import "github.com/readygate/readygate/internal/neterror"

// Result is the kind of an observation.
type Result string

// Results, named as the metrics name them.
const (
	// Healthy: the component is ready.
	Healthy Result = "healthy"
	// Unhealthy: the component answered, and is not ready.
	Unhealthy Result = "unhealthy"
	// Error: there was no answer, or none that can be understood.
	Error Result = "error"
)

// Observation is what a check found. Reason is one CamelCase word, Message a short sentence
// for people; both become part of a node condition.
type Observation struct {
	Result  Result
	Reason  string
	Message string
}

// Healthy reports whether the component is ready.
func (o Observation) Healthy() bool { return o.Result == Healthy }

// Reasons of checks that ask an endpoint. The first three are older than this project.
const (
	ReasonEndpointOK              = "EndpointOK"
	ReasonEndpointNotReady        = "EndpointNotReady"
	ReasonEndpointConnectionError = "EndpointConnectionError"
)

// Reasons of checks that look at a file.
const (
	ReasonFileOK         = "FileOK"
	ReasonFileMissing    = "FileMissing"
	ReasonFileTooOld     = "FileTooOld"
	ReasonFileLacksText  = "FileLacksText"
	ReasonFileUnreadable = "FileUnreadable"
)

// Reasons of checks that run a command.
const (
	ReasonCommandOK       = "CommandOK"
	ReasonCommandFailed   = "CommandFailed"
	ReasonCommandTimedOut = "CommandTimedOut"
	ReasonCommandNotRun   = "CommandNotRun"
)

// Reasons of checks of the network of pods.
const (
	// ReasonNetworkOK: the plugins are ready, or the canary was connected.
	ReasonNetworkOK = "NetworkOK"
	// ReasonPeerReached: a reporter on another node answered.
	ReasonPeerReached = "PeerReached"
	// ReasonNoPeers: there is no other node that is ready, so there is no peer to reach; or
	// it is not known yet whether there is one.
	ReasonNoPeers = "NoPeers"
	// ReasonPeersUnreachable: reporters on other nodes are ready, or were when the network broke,
	// and none of those that were tried answered.
	ReasonPeersUnreachable = "PeersUnreachable"
)

// ReasonCheckHangs means that the check did not come back at all, long after its timeout.
const ReasonCheckHangs = "CheckHangs"

func healthy(reason, message string) Observation {
	return Observation{Result: Healthy, Reason: reason, Message: message}
}

func unhealthy(reason, message string) Observation {
	return Observation{Result: Unhealthy, Reason: reason, Message: message}
}

func failed(reason, message string) Observation {
	return Observation{Result: Error, Reason: reason, Message: message}
}

// noAnswer is what a check finds whose request to the target failed.
func noAnswer(target string, err error, env Env) Observation {
	return failed(ReasonEndpointConnectionError, target+": "+neterror.Explain(err, env.Timeout))
}
