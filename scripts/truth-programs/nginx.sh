# An nginx that answers $1 requests, of a part of a text each, compressed.
rm -rf web nginx.sock; mkdir -p web/logs; head -c 100000 words.txt > web/words.txt; chmod -R a+rX web
cat > nginx.conf <<CONF
error_log logs/e; pid logs/p; worker_processes 2; daemon off; events {}
http { access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path c;
server { listen unix:$PWD/nginx.sock; root $PWD/web; gzip on; gzip_types text/plain; gzip_comp_level 1; } }
CONF
nginx -p "$PWD/web" -e logs/e -c "$PWD/nginx.conf" &
server=$!
i=0; until [ -S nginx.sock ]; do i=$((i + 1)); [ $i -lt 100 ] && kill -0 $server 2> /dev/null || exit 9; sleep 0.02; done
chmod 777 nginx.sock
curl -sf -H 'Accept-Encoding: gzip' -o /dev/null --unix-socket nginx.sock "http://x/words.txt?[1-$1]" || exit 8
kill $server; wait $server
exit 0
