<?php
/** An empty database: WordPress uses its defaults, and the orders are stored in files. */
$wpdb = new class ('', '', '', '') extends wpdb {
    public function db_connect($allow_bail = true) { return true; }
    public function query($query) { $this->last_result = []; return 0; }
    public function _real_escape($data) { return addslashes((string) $data); }
    public function set_sql_mode($modes = []) {}
    public function db_version() { return '8.0'; }
};
