#!/bin/sh
# node.sh MOUNTS NODES COMMON COMMAND...: runs a rank on "its node": of the mounts MOUNTS/node-0, node-1, ... it sees one
# alone, at COMMON, as processes of a cluster see a parallel file system. Started by `unshare -m`, in a mount namespace.
set -e
mounts=$1 nodes=$2 common=$3
shift 3
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} size=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE:-1}}
mount --bind "$mounts/node-$((rank * nodes / size))" "$common"
exec "$@"
