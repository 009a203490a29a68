package check

import "github.com/readygate/readygate/internal/neterror"

// Result is the kind of an Observation.
type Result string

// Results; they are values of the label result in the metrics.
const (
	// Healthy: the component is ready.
	Healthy Result = "healthy"
	// Unhealthy: the component responded, and is not ready.
	Unhealthy Result = "unhealthy"
	// Error: the check got no valid response.
	Error Result = "error"
)

// Observation is the outcome of one run of a check. Reason is one CamelCase word, Message a short sentence;
// both become part of a node condition.
type Observation struct {
	Result  Result
	Reason  string
	Message string
}

// Healthy reports whether the component is ready.
func (o Observation) Healthy() bool { return o.Result == Healthy }

// Reasons of checks of an endpoint. They are those of node-readiness-controller.
const (
	ReasonEndpointOK              = "EndpointOK"
	ReasonEndpointNotReady        = "EndpointNotReady"
	ReasonEndpointConnectionError = "EndpointConnectionError"
)

// Reasons of checks of a file.
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

// Reasons of checks of the pod network.
const (
	// ReasonNetworkOK: the plugins are ready, or the canary passed its checks.
	ReasonNetworkOK = "NetworkOK"
	// ReasonPeerReached: a reporter on another node responded.
	ReasonPeerReached = "PeerReached"
	// ReasonNoPeers: no reporter on another node is ready, or the check has not
	// determined yet whether there is one.
	ReasonNoPeers = "NoPeers"
	// ReasonPeersUnreachable: reporters on other nodes are ready, or were when the network failed,
	// and none that was tried responded.
	ReasonPeersUnreachable = "PeersUnreachable"
)

// ReasonCheckHangs means that the check did not return, long after its timeout.
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

// noAnswer is the result of a check whose request to the target failed.
func noAnswer(target string, err error, env Env) Observation {
	return failed(ReasonEndpointConnectionError, target+": "+neterror.Explain(err, env.Timeout))
}
