#!/bin/bash
# Compiles the geocoder, and installs scripts and application.
# Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/site.sh \
    ../common/sourced/data.sh ../common/sourced/mariadb.sh ../common/sourced/nginx.sh \
    ../common/sourced/supervise.sh
install -m 644 ../kit/load/generator.py ../kit/load/report.py \
    ../kit/load/rows.py ../kit/load/user.py ../kit/load/words.json "$1"
install -m 644 schema.sql ./*.py "$1"
install -m 755 site.sh ../kit/load/driver.py "$1"
mkdir -p "$1/geocoder/WEB-INF/classes"
install -m 644 geocoder/server.xml "$1/geocoder"
install -m 644 geocoder/web.xml "$1/geocoder/WEB-INF"
java -cp '/usr/share/java/*' org.eclipse.jdt.internal.compiler.batch.Main \
    -17 -proc:none -warn:none -cp /usr/share/tomcat10/lib/servlet-api.jar \
    -d "$1/geocoder/WEB-INF/classes" geocoder/src
cp -r app "$1/app"
chmod -R u=rwX,go=rX "$1/app" "$1/geocoder"
