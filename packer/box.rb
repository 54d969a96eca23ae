# -*- mode: ruby -*-
# What every machine of this box has: it boots the kernel beside this file, and lets in the key beside it.

Vagrant.configure("2") do |config|
  here = File.dirname(File.expand_path(__FILE__))
  config.ssh.username = "root"
  config.ssh.private_key_path = File.join(here, "key")
  config.ssh.insert_key = false
  # Root needs no sudo, and the image has none.
  config.ssh.sudo_command = "%c"
  config.vm.provider :libvirt do |libvirt|
    libvirt.kernel = File.join(here, "kernel")
    libvirt.initrd = File.join(here, "initrd")
    # Without AppArmor: its parser is not in the image, and Docker in the guest would look for it.
    libvirt.cmd_line = "root=LABEL=strata-root ro net.ifnames=0 console=ttyS0 quiet apparmor=0"
  end
end
