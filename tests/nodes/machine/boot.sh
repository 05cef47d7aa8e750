#!/bin/bash
# What a machine does in each boot before containerd starts: /etc/lab/machine says who it is.
set -eu
source /etc/lab/machine
ip link set lo up
ip addr add "$address/24" dev host0
ip link set host0 up
ip route add default via "$gateway"
echo 1 > /proc/sys/net/ipv4/ip_forward
# The container manager mounts the cgroup controllers of version 1 read-only; kubelet and runc make groups in them.
for controller in /sys/fs/cgroup/*/; do mount -o remount,bind,rw "$controller" 2> /dev/null || true; done
# A real boot begins without the groups of the boot before; here they outlive the machine.
find /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/kubepods -depth -type d -exec rmdir {} \; 2> /dev/null || true
# The kubelet insists on these sysctls. They are the kernel's, and so the computer's: the kubelet sees files of its own.
mkdir -p /run/sysctl
own() {
  local file=/run/sysctl/${1//\//_}
  echo "$2" > "$file"
  mount --bind "$file" "/proc/sys/$1"
}
own vm/overcommit_memory 1
own vm/panic_on_oom 0
own kernel/panic 10
own kernel/panic_on_oops 1
own kernel/keys/root_maxkeys 1000000
own kernel/keys/root_maxbytes 25000000
# containerd and the kubelet read it; the real one is the computer's.
ln -sfn /dev/null /dev/kmsg
# The boot id that systemd-nspawn gives this boot lies in a file without a name, which cannot be mounted once more.
cat /proc/sys/kernel/random/boot_id > /run/boot-id
mount --make-rshared /
