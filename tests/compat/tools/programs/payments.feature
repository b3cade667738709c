Feature: Payments

  Scenario Outline: <action>
    Given an order
    When the customer chooses to <action>
    Then its status is <status>

    Examples:
      | action | status    |
      | pay    | completed |
      | fail   | error     |
      | wait   | expired   |
