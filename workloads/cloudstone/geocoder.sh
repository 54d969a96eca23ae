#!/bin/bash
# The geocoders on Tomcat, one for each instance, in the foreground.  Usage: geocoder.sh ADDRESS PORTS
set -euo pipefail

# shellcheck source=workloads/cloudstone/common.sh
source "${0%/*}/common.sh"

address=$1
IFS=, read -ra ports <<<"$2"

serve() {
    local folder=$home/$1/geocoder
    mkdir -p "$folder"/{conf,temp,webapps}
    chown www-data: "$folder/temp"
    cat >"$folder/conf/server.xml" <<XML
<Server port="-1">
  <Service name="geocoder">
    <Connector address="$address" port="${ports[$1]}" protocol="HTTP/1.1" maxThreads="32"/>
    <Engine name="geocoder" defaultHost="localhost">
      <Host name="localhost" createDirs="false" autoDeploy="false" deployOnStartup="false">
        <Context path="" docBase="$programs/geocoder">
          <JarScanner scanClassPath="false" scanManifest="false"/>
        </Context>
      </Host>
    </Engine>
  </Service>
</Server>
XML
    # Little is asked of it: a small heap, and a compiler that is quick rather than thorough.
    exec setpriv --reuid=www-data --regid=www-data --clear-groups -- \
        java -Xms64m -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir="$folder/temp" \
        -Dcatalina.home=/usr/share/tomcat10 -Dcatalina.base="$folder" \
        -cp /usr/share/tomcat10/bin/bootstrap.jar:/usr/share/tomcat10/bin/tomcat-juli.jar \
        org.apache.catalina.startup.Bootstrap start
}

stand_each "${#ports[@]}" TERM
