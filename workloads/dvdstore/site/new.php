<?php
// Makes a new customer.
declare(strict_types=1);
require __DIR__ . '/shop.php';

// In the order of new_customer().
const FIELDS = ['first_name', 'last_name', 'street', 'city', 'country', 'email', 'phone', 'card', 'username', 'password',
    'age', 'income', 'gender'];

$values = array_map(field(...), FIELDS);
if (preg_grep('/^.{1,50}$/Dus', $values, PREG_GREP_INVERT)) {
    page('refused', 'All fields have to be filled in, with at most 50 letters each', '', [], 422);
    exit;
}
$slots = implode(', ', array_map(fn(int $slot): string => "\$$slot", range(1, count($values))));
$number = ask("SELECT new_customer($slots)", $values)[0]['new_customer'];
if ($number === null) {
    page('refused', 'Somebody else has that name already', '', [], 409);
    exit;
}
remember((int) $number);
page('new', 'Welcome, ' . field('first_name'), search_form(), ['customer' => $number]);
