<?php
// The one program that the web server calls: finds what is asked for, and says what went wrong.
declare(strict_types=1);

require __DIR__ . '/base.php';
require __DIR__ . '/pages.php';
require __DIR__ . '/forms.php';

const ROUTES = [
    'GET /' => 'home_page',
    'GET /search' => 'search_page',
    'GET /login' => 'login_page',
    'POST /login' => 'login',
    'POST /logout' => 'logout',
    'GET /events/new' => 'new_event_page',
    'POST /events' => 'add_event',
    'GET /events/N' => 'event_page',
    'POST /events/N/attend' => 'attend',
    'GET /people/new' => 'new_person_page',
    'GET /people/taken' => 'taken_answer',
    'POST /people' => 'add_person',
    'GET /people/N' => 'person_page',
    'GET /status' => 'status_answer',
];

try {
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    $route = $_SERVER['REQUEST_METHOD'] . ' ' . preg_replace('#/\d{1,9}(?=/|$)#', '/N', (string)$path);
    $answer = ROUTES[$route] ?? throw new Refused('there is no such page', 404);
    preg_match('#/(\d{1,9})(?=/|$)#', $path, $number);
    begin_session();
    $answer(...array_map('intval', array_slice($number, 1)));
} catch (Refused $refused) {
    page('That did not work', '<p class="wrong">' . h($refused->getMessage()) . '</p>', $refused->getCode() ?: 400);
} catch (Throwable $error) {
    error_log('ERROR: ' . $error);
    page('Something went wrong', '<p class="wrong">The server has noted what.</p>', 500);
}
