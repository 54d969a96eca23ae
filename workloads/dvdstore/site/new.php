<?php
// Adds a new customer, and logs the customer in.
declare(strict_types=1);
require __DIR__ . '/shop.php';

// In the order of the arguments of new_customer() in procedures.sql.
const FIELDS = ['first_name', 'last_name', 'street', 'city', 'country', 'email', 'phone', 'card',
    'username', 'password', 'age', 'income', 'gender'];

$values = array_map(read_field(...), FIELDS);
if (preg_grep('/^.{1,50}$/Dus', $values, PREG_GREP_INVERT)) {
    refuse_request('All fields have to be filled in, with at most 50 letters each', 422);
}
$slots = implode(', ', array_map(fn(int $slot): string => "\$$slot", range(1, count($values))));
$number = query_database("SELECT new_customer($slots)", $values)[0]['new_customer'];
if ($number === null) {
    refuse_request('Somebody else has that name already', 409);
}
remember_customer((int) $number);
$title = 'Welcome, ' . read_field('first_name');
print_page('new', $title, render_search_form(), ['customer' => $number]);
