<?php
// The cluster client of phpredis, unmodified: cluster_php.php PORT PORT PORT (of the nodes). Writes
// and reads back until its input ends; a line for each value that was acknowledged ("ok N"), and for
// each call that failed ("failed WHY").
//
// An object of phpredis asks for the layout when it is made, and else only when it is redirected, which
// Leasehold never does. So it is made again after an exception, as each request of a PHP program makes
// its own.
$seeds = array_map(fn($port) => "127.0.0.1:$port", array_slice($argv, 1));
// By TLS and as a user if the test has set ACCESS_* (secured.py).
$access = getenv('ACCESS_CA') === false ? [] :
    [false, [getenv('ACCESS_USER'), getenv('ACCESS_PASSWORD')], ['cafile' => getenv('ACCESS_CA')]];
$client = null;
stream_set_blocking(STDIN, false);
for ($number = 1; ; ++$number) {
    fread(STDIN, 1);
    if (feof(STDIN)) {
        break;
    }
    try {
        $client ??= new RedisCluster(null, $seeds, 1.0, 3.0, ...$access);
        if ($client->set("php:$number", (string)$number) === true) {
            echo "ok $number\n";
            $read = $client->get("php:$number");
            if ($read !== (string)$number && $client->getLastError() === null) {
                echo "wrong $number " . var_export($read, true) . "\n";
            }
        }
        if ($client->getLastError() !== null) {
            echo 'failed ' . $client->getLastError() . "\n";
            $client->clearLastError();
        }
    } catch (RedisClusterException | RedisException $error) {
        echo 'failed ' . get_class($error) . ': ' . $error->getMessage() . "\n";
        $client = null;
    }
    usleep(10000);
}
