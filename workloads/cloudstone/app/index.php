<?php
// The one program that the web server calls: finds the function that answers a request.
declare(strict_types=1);

require __DIR__ . '/base.php';
require __DIR__ . '/pages.php';
require __DIR__ . '/forms.php';

// Method and path, with N for a number, which the function gets.
const ROUTES = [
    'GET /' => 'show_home',
    'GET /search' => 'show_search',
    'GET /login' => 'show_login',
    'POST /login' => 'log_in',
    'POST /logout' => 'log_out',
    'GET /events/new' => 'show_event_form',
    'POST /events' => 'add_event',
    'GET /events/N' => 'show_event',
    'POST /events/N/attend' => 'attend_event',
    'GET /people/new' => 'show_person_form',
    'GET /people/taken' => 'show_name_taken',
    'POST /people' => 'add_person',
    'GET /people/N' => 'show_person',
    'GET /status' => 'show_books',
];

try {
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    $pattern = preg_replace('#/\d{1,9}(?=/|$)#', '/N', (string)$path);
    $route = "$_SERVER[REQUEST_METHOD] $pattern";
    $answer = ROUTES[$route] ?? throw new Refused('there is no such page', 404);
    preg_match('#/(\d{1,9})(?=/|$)#', $path, $number);
    begin_session();
    $answer(...array_map('intval', array_slice($number, 1)));
} catch (Refused $refused) {
    $message = '<p class="wrong">' . escape_html($refused->getMessage()) . '</p>';
    print_page('That did not work', $message, $refused->getCode() ?: 400);
} catch (Throwable $error) {
    error_log('ERROR: ' . $error);
    print_page('Something went wrong', '<p class="wrong">The server has noted what.</p>', 500);
}
